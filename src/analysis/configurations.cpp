// SPDX-License-Identifier: Apache-2.0
#include "analysis/configurations.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/factors.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

std::size_t distinct_levels(const std::vector<const Configuration*>& members, const std::string& factor) {
    std::set<double> levels;
    for (const Configuration* member : members) {
        levels.insert(*member->number(factor));
    }
    return levels.size();
}

json without(json factors, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        factors.erase(name);
    }
    return factors;
}

/// Groups members by their factors less those in `varying`; a group of one level is no series.
std::vector<Series> grouped(const std::vector<const Configuration*>& members, const std::string& factor,
                            const std::string& scaling, std::initializer_list<const char*> varying) {
    std::map<json, std::vector<const Configuration*>> groups;
    for (const Configuration* member : members) {
        groups[without(member->factors, varying)].push_back(member);
    }
    std::vector<Series> series;
    for (auto& [group, chosen] : groups) {
        if (distinct_levels(chosen, factor) >= 2) {
            std::ranges::stable_sort(chosen, {}, [&](const Configuration* c) { return *c->number(factor); });
            series.push_back({factor, scaling, group, chosen, false});
        }
    }
    return series;
}

/// Series at one size of the data set; where there is none because it grows with the GPUs, that series,
/// marked.
void append_scaling(std::vector<Series>& all, const std::vector<const Configuration*>& members,
                    const std::string& scaling, const char* follows) {
    auto fixed = grouped(members, "gpus", scaling, {"gpus", "nodes", follows});
    auto growing = grouped(members, "gpus", scaling, {"gpus", "nodes", follows, "dataset_samples"});
    for (Series& series : growing) {
        const bool known = std::ranges::any_of(fixed, [&](const Series& one) {
            return without(one.group, {"dataset_samples"}) == series.group;
        });
        if (!known) {
            series.data_grows = true;
            fixed.push_back(std::move(series));
        }
    }
    std::ranges::move(fixed, std::back_inserter(all));
}

/// Of the runs, or of the repeats that the only row of a table is the mean of.
std::optional<stats::Summary> summary_of(const Configuration& configuration, std::string_view metric) {
    const auto values = configuration.values(metric);
    if (values.size() != 1 || configuration.repeats() == 1) {
        return stats::summarise(values);
    }
    const auto& sds = configuration.runs.front()->sd_given;
    const auto sd = sds.find(std::string(metric));
    return stats::summary_of(configuration.repeats(), values.front(),
                             sd == sds.end() ? std::nullopt : std::optional(sd->second));
}

}  // namespace

Value Configuration::number(std::string_view factor) const {
    return analysis::number(factors, factor);
}

Value Configuration::mean(std::string_view metric) const {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? std::nullopt : Value(found->second.mean);
}

std::vector<double> Configuration::values(std::string_view metric) const {
    const MetricField& field = metric_field(metric);
    std::vector<double> values;
    for (const RunMetrics* run : runs) {
        const Value& value = run->*field.value;
        if (value && !(field.of_energy && run->energy_uncertain)) {
            values.push_back(*value);
        }
    }
    return values;
}

std::vector<Configuration> configurations_of(const std::vector<RunMetrics>& runs) {
    std::map<json, Configuration> by_factors;
    for (const RunMetrics& run : runs) {
        if (run.usable()) {
            Configuration& configuration = by_factors[run.factors];
            configuration.factors = run.factors;
            configuration.runs.push_back(&run);
        }
    }
    std::vector<Configuration> configurations;
    for (auto& [factors, configuration] : by_factors) {
        for (const MetricField& field : metric_fields()) {
            if (const auto summary = summary_of(configuration, field.name)) {
                configuration.metrics.emplace(field.name, *summary);
            }
        }
        configurations.push_back(std::move(configuration));
    }
    return configurations;
}

stats::Estimate ratio(const Configuration& a, const Configuration& b, std::string_view metric) {
    const auto logs = [&](const Configuration& configuration) {
        const stats::Summary& given = configuration.metrics.find(metric)->second;
        auto values = configuration.values(metric);
        if (values.size() == 1 && given.sd) {  // of the mean that a table gives, to first order
            return stats::summary_of(given.n, std::log(given.mean), *given.sd / given.mean);
        }
        std::ranges::transform(values, values.begin(), [](double value) { return std::log(value); });
        return *stats::summarise(values);
    };
    return stats::ratio(logs(a), logs(b));
}

bool any_simulated(const std::vector<const Configuration*>& configurations) {
    return std::ranges::any_of(configurations, &Configuration::simulated);
}

std::size_t Series::levels() const {
    return distinct_levels(members, factor);
}

std::vector<Series> series_over(const std::vector<Configuration>& configurations, const std::string& factor) {
    std::vector<const Configuration*> members, batched, unbatched;
    for (const Configuration& configuration : configurations) {
        if (configuration.number(factor)) {
            members.push_back(&configuration);
            const bool known = configuration.number("local_batch") && configuration.number("global_batch");
            (known ? batched : unbatched).push_back(&configuration);
        }
    }
    if (factor == "gpus") {
        std::vector<Series> all;
        append_scaling(all, batched, "strong", "local_batch");
        append_scaling(all, batched, "weak", "global_batch");
        append_scaling(all, unbatched, "", "gpus");
        return all;
    }
    if (factor == "local_batch" || factor == "global_batch") {
        // At a fixed number of GPUs one follows from the other.
        return grouped(members, factor, "", {"local_batch", "global_batch"});
    }
    return grouped(members, factor, "", {factor.c_str()});
}

}  // namespace joulemark::analysis
