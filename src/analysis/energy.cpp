// SPDX-License-Identifier: Apache-2.0
#include "analysis/energy.h"

#include <algorithm>
#include <functional>
#include <set>

#include "analysis/configurations.h"
#include "analysis/factors.h"
#include "core/units.h"
#include "stats/linear.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;
using Members = std::vector<const Configuration*>;

/// x of a configuration, absent where it has none.
using Abscissa = std::function<Value(const Configuration&)>;

json series_key(const json& factors) {
    json key = json::object();
    for (const char* name : {"workload", "hardware", "series"}) {
        if (const auto found = factors.find(name); found != factors.end()) {
            key[name] = *found;
        }
    }
    return key;
}

std::map<json, Members> by_series(const std::vector<Configuration>& configurations) {
    std::map<json, Members> groups;
    for (const Configuration& configuration : configurations) {
        groups[series_key(configuration.factors)].push_back(&configuration);
    }
    return groups;
}

stats::Estimate scaled(stats::Estimate estimate, double factor) {
    estimate.value *= factor;
    if (estimate.ci95) {
        estimate.ci95 = stats::Interval{estimate.ci95->low * factor, estimate.ci95->high * factor};
    }
    return estimate;
}

/// kWh over x; none with fewer than three different x.
std::optional<EnergyLine> line_through(const Members& members, const Abscissa& abscissa, double slope_unit) {
    std::vector<double> x, y, relative;
    EnergyLine line;
    for (const Configuration* member : members) {
        const Value at = abscissa(*member);
        const Value energy = member->mean("energy_j");
        if (at && energy && *at > 0 && *energy > 0) {
            x.push_back(*at);
            y.push_back(kwh(*energy));
            relative.push_back(1 / (y.back() * y.back()));
            line.n_runs += member->runs.size();
        }
    }
    if (std::set<double>(x.begin(), x.end()).size() < 3) {
        return std::nullopt;
    }
    const auto fit = stats::fit_line(x, y);
    if (!fit) {
        return std::nullopt;
    }
    line.n = x.size();
    line.simulated = any_simulated(members);
    line.slope = scaled(fit->parameter(1), slope_unit);
    line.intercept = fit->parameter(0);
    line.r2 = fit->r2;
    if (const auto weighted = stats::fit_line(x, y, relative)) {
        line.weighted_slope = scaled(weighted->parameter(1), slope_unit);
    }
    return line;
}

}  // namespace

std::vector<EnergyLine> energy_per_gpu_hour(const std::vector<Configuration>& configurations) {
    const Abscissa gpu_hours = [](const Configuration& c) { return c.mean("gpu_hours"); };
    std::vector<EnergyLine> lines;
    Members all;
    for (const auto& [group, members] : by_series(configurations)) {
        if (auto line = line_through(members, gpu_hours, 1)) {
            line->group = group;
            lines.push_back(std::move(*line));
        }
        all.insert(all.end(), members.begin(), members.end());
    }
    if (auto line = line_through(all, gpu_hours, 1)) {
        line->pooled = true;
        lines.push_back(std::move(*line));
    }
    return lines;
}

std::vector<EnergyLine> energy_per_sample(const std::vector<Configuration>& configurations) {
    constexpr double wh_per_kwh = 1000;
    std::vector<EnergyLine> lines;
    for (const auto& [group, members] : by_series(configurations)) {
        const Abscissa samples = [](const Configuration& c) { return c.number("dataset_samples"); };
        if (auto line = line_through(members, samples, wh_per_kwh)) {
            line->group = group;
            lines.push_back(std::move(*line));
        }
    }
    return lines;
}

}  // namespace joulemark::analysis
