// SPDX-License-Identifier: Apache-2.0
#include "analysis/least_energy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "analysis/configurations.h"
#include "stats/optimum.h"

namespace joulemark::analysis {
namespace {

using stats::Form;

constexpr std::size_t least_levels = 5;
/// The share of resampled studies with a minimum between the levels from which there is one.
constexpr double sure_of_minimum = 0.95;
constexpr std::array time_forms{Form::power, Form::amdahl, Form::power_floor, Form::saturating};
/// What a GPU draws follows a cap or a clock smoothly; a third parameter would follow the noise.
constexpr std::array power_forms{Form::power, Form::linear};

/// How far the laws' product is from the measured energies.
stats::LackOfFit lack_of_fit(const stats::Optimum& optimum, const std::vector<stats::Level>& energies) {
    const stats::LevelMeans means = stats::level_means(energies);
    Eigen::VectorXd log_residuals = means.log_mean;
    for (Eigen::Index i = 0; i < means.size(); ++i) {
        log_residuals[i] -= std::log(optimum.fitted[static_cast<std::size_t>(i)]);
    }
    return stats::lack_of_fit(means, log_residuals, optimum.parameters);
}

void append(std::vector<LeastEnergy>& list, const Series& series, int resamples) {
    std::vector<stats::Level> times, powers, energies;
    for (const Configuration* member : series.members) {
        stats::Level time{*member->number(series.factor), {}}, power = time, energy = time;
        for (const RunMetrics* run : member->runs) {
            if (run->epoch_time_s && run->epoch_energy_j && *run->epoch_time_s > 0) {
                time.values.push_back(*run->epoch_time_s);
                power.values.push_back(*run->epoch_energy_j / *run->epoch_time_s);
                energy.values.push_back(*run->epoch_energy_j);
            }
        }
        if (!time.values.empty()) {
            times.push_back(std::move(time));
            powers.push_back(std::move(power));
            energies.push_back(std::move(energy));
        }
    }
    if (times.size() < least_levels) {
        return;
    }
    const auto optimum = stats::least_product(time_forms, times, power_forms, powers, resamples);
    if (!optimum) {
        return;
    }
    const stats::LackOfFit lack = lack_of_fit(*optimum, energies);
    LeastEnergy least{.factor = series.factor,
                      .group = series.group,
                      .measured_at = 0,
                      .measured = {.n = 0, .mean = stats::infinity},
                      .optimum = {},
                      .reason = "",
                      .departure = lack.departure,
                      .n_levels = times.size(),
                      .simulated = any_simulated(series.members)};
    for (const Configuration* member : series.members) {
        const auto energy = member->metrics.find("epoch_energy_j");
        if (energy != member->metrics.end() && energy->second.mean < least.measured.mean) {
            least.measured_at = *member->number(series.factor);
            least.measured = energy->second;
        }
    }
    if (lack.significant()) {
        least.reason = "the product of the laws of epoch time and mean power " + lack.text();
    } else {
        least.optimum = *optimum;
    }
    list.push_back(std::move(least));
}

}  // namespace

std::vector<LeastEnergy> least_energy_of(const std::vector<Configuration>& configurations) {
    std::vector<Series> all;
    for (const char* factor : {"power_cap_w", "sm_clock_mhz"}) {
        std::ranges::move(series_over(configurations, factor), std::back_inserter(all));
    }
    // A full factorial has many series; what one gets is bounded so that the whole stays within seconds.
    const int resamples = std::clamp(3000 / static_cast<int>(std::max<std::size_t>(all.size(), 1)), 60, 400);
    std::vector<LeastEnergy> list;
    for (const Series& series : all) {
        append(list, series, resamples);
    }
    return list;
}

void refuse_without_minimum(std::vector<Law>& laws, const std::vector<LeastEnergy>& least_energy) {
    for (const LeastEnergy& least : least_energy) {
        const auto& optimum = least.optimum;
        if (!optimum || !optimum->interior || optimum->interior_share < sure_of_minimum) {
            continue;
        }
        const auto same = [&](const Law& law) {
            return law.factor == least.factor && law.group == least.group && law.fit &&
                   (law.response == "epoch_energy_j" || law.response == "energy_j");
        };
        std::set<std::string> refused;
        for (const Law& law : laws) {
            if (same(law) && law.selected) {
                refused.insert(law.response);
            }
        }
        for (Law& law : laws) {
            if (same(law) && refused.contains(law.response)) {
                law.selected = false;
                law.reason = fmt::format("no form fits: energy is least between the levels, at {:.4g}, and no "
                                         "form has a minimum",
                                         optimum->at);
            }
        }
    }
}

}  // namespace joulemark::analysis
