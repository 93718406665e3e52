// SPDX-License-Identifier: Apache-2.0
#include "analysis/least_energy.h"

#include <algorithm>
#include <array>

#include "analysis/configurations.h"
#include "stats/optimum.h"

namespace joulemark::analysis {
namespace {

using stats::Form;

constexpr std::size_t least_levels = 5;
constexpr std::array time_forms{Form::power, Form::amdahl, Form::power_floor, Form::saturating};
/// What a GPU draws follows a cap or a clock smoothly; a third parameter would follow the noise.
constexpr std::array power_forms{Form::power, Form::linear};

void append(std::vector<LeastEnergy>& list, const Series& series, int resamples) {
    std::vector<stats::Level> times, powers;
    for (const Configuration* member : series.members) {
        stats::Level time{*member->number(series.factor), {}}, power = time;
        for (const RunMetrics* run : member->runs) {
            if (run->epoch_time_s && run->epoch_energy_j && *run->epoch_time_s > 0) {
                time.values.push_back(*run->epoch_time_s);
                power.values.push_back(*run->epoch_energy_j / *run->epoch_time_s);
            }
        }
        if (!time.values.empty()) {
            times.push_back(std::move(time));
            powers.push_back(std::move(power));
        }
    }
    if (times.size() < least_levels) {
        return;
    }
    if (const auto optimum = stats::least_product(time_forms, times, power_forms, powers, resamples)) {
        list.push_back({.factor = series.factor,
                        .group = series.group,
                        .optimum = *optimum,
                        .n_levels = times.size(),
                        .simulated = any_simulated(series.members)});
    }
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

}  // namespace joulemark::analysis
