// SPDX-License-Identifier: Apache-2.0
#include "analysis/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analysis/configurations.h"
#include "analysis/factors.h"
#include "store/summary.h"

namespace joulemark::analysis {
namespace {

enum class Scale { factor, watt_per_gpu, watt_per_host, watt_per_gb };

/// An unmeasured part and the range of what it adds. Ranges are wide on purpose: they are what a referee
/// could ask for, not what is likely.
struct Part {
    const char* component;
    Scale scale;
    double low, high;
    const char* source;
};
constexpr std::array parts{
    Part{"cpu", Scale::watt_per_host, 40, 500, "idle single-socket to loaded two-socket server"},
    Part{"dram", Scale::watt_per_gb, 0.05, 0.375, "idle DDR5 to the rule of 3 W per 8 GB"},
    Part{"network", Scale::watt_per_gpu, 2, 40,
         "one shared adapter per node to a 400 Gb/s port and its switches per GPU"},
    Part{"psu", Scale::factor, 1 / 0.96, 1 / 0.87, "80 PLUS Titanium to Gold, at half and full load"},
    Part{"cooling", Scale::factor, 1.03, 1.58,
         "PUE of warm-water cooling to the industry's mean (Uptime Institute 2023)"},
};
constexpr std::array factors{"gpus", "power_cap_w", "sm_clock_mhz", "local_batch", "global_batch"};

const char* unit_of(Scale scale) {
    switch (scale) {
        case Scale::factor:
            return "times the measured energy";
        case Scale::watt_per_gpu:
            return "W per GPU";
        case Scale::watt_per_host:
            return "W per host";
        default:
            return "W per GB of host memory";
    }
}

bool lacks(const RunMetrics& run, const std::string& component) {
    const auto& energy = run.provenance["energy_j"];
    const auto missing = energy.find("lacks");
    return missing != energy.end() &&
           std::find(missing->begin(), missing->end(), component) != missing->end();
}

/// Whether what the part adds is known for this run: watts need its hosts, GPUs or memory.
bool applies(const Part& part, const RunMetrics& run) {
    return run.usable() && run.energy_j && run.wall_time_s && lacks(run, part.component) &&
           (part.scale != Scale::watt_per_gb || run.host_memory_gb);
}

/// Hosts that share the work: those metered, or as many as the GPUs stated fill.
double host_count(const RunMetrics& run) {
    const auto gpus = number(run.factors, "gpus"), per_node = number(run.factors, "gpus_per_node");
    const double filled = gpus && per_node && *per_node > 0 ? std::ceil(*gpus / *per_node) : 0;
    return std::max(static_cast<double>(run.hosts.size()), filled);
}

/// Energy with the part at `level`, of `energy_j` spent in `seconds` of this run.
double adjusted(const Part& part, double level, const RunMetrics& run, double energy_j, double seconds) {
    switch (part.scale) {
        case Scale::factor:
            return energy_j * level;
        case Scale::watt_per_gpu:
            return energy_j + level * seconds * run.gpu_count;
        case Scale::watt_per_host:
            return energy_j + level * seconds * host_count(run);
        default:
            return energy_j + level * seconds * run.host_memory_gb.value_or(0);
    }
}

/// Mean epoch energy of a configuration with the part at `level`.
Value epoch_energy(const Part& part, double level, const Configuration& configuration) {
    double sum = 0;
    for (const RunMetrics* run : configuration.runs) {
        if (!applies(part, *run) || !run->epoch_energy_j || !run->epoch_time_s) {
            return std::nullopt;
        }
        sum += adjusted(part, level, *run, *run->epoch_energy_j, *run->epoch_time_s);
    }
    return sum / static_cast<double>(configuration.runs.size());
}

/// The level of least epoch energy of a series; none when the part does not apply to all of it.
const Configuration* least(const Part& part, double level, const Series& series) {
    const Configuration* best = nullptr;
    double best_energy = 0;
    for (const Configuration* member : series.members) {
        const Value energy = epoch_energy(part, level, *member);
        if (!energy) {
            return nullptr;
        }
        if (best == nullptr || *energy < best_energy) {
            best = member;
            best_energy = *energy;
        }
    }
    return best;
}

void add_conclusions(Sensitivity& sensitivity, const Part& part, const std::vector<Series>& all) {
    const double without = part.scale == Scale::factor ? 1 : 0;
    for (const Series& series : all) {
        const Configuration* measured = least(part, without, series);
        if (measured == nullptr) {
            continue;
        }
        const bool survives =
            least(part, part.low, series) == measured && least(part, part.high, series) == measured;
        sensitivity.conclusions.push_back(
            {fmt::format("{} {:g} needs the least energy per epoch{}", series.factor,
                         *measured->number(series.factor),
                         series.group.empty() ? "" : " at " + store::factors_text(series.group)),
             survives});
    }
}

}  // namespace

std::vector<Sensitivity> sensitivity_of(const std::vector<RunMetrics>& runs,
                                        const std::vector<Configuration>& configurations) {
    std::vector<Series> all;
    for (const char* factor : factors) {
        std::ranges::move(series_over(configurations, factor), std::back_inserter(all));
    }
    std::erase_if(all, [](const Series& series) { return series.data_grows; });
    std::vector<Sensitivity> list;
    for (const Part& part : parts) {
        Sensitivity sensitivity{part.component, part.low, part.high, unit_of(part.scale),
                                part.source,    {0, 0},   {}};
        bool any = false;
        for (const RunMetrics& run : runs) {
            if (applies(part, run)) {
                any = true;
                sensitivity.energy_band_j.low +=
                    adjusted(part, part.low, run, *run.energy_j, *run.wall_time_s);
                sensitivity.energy_band_j.high +=
                    adjusted(part, part.high, run, *run.energy_j, *run.wall_time_s);
            }
        }
        if (any) {
            add_conclusions(sensitivity, part, all);
            list.push_back(std::move(sensitivity));
        }
    }
    return list;
}

}  // namespace joulemark::analysis
