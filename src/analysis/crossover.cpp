// SPDX-License-Identifier: Apache-2.0
#include "analysis/crossover.h"

#include <algorithm>
#include <map>

#include "analysis/configurations.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

/// Their energies may be compared: both known, of the same components.
bool comparable(const Configuration& a, const Configuration& b) {
    return a.mean("epoch_energy_j").value_or(0) > 0 && b.mean("epoch_energy_j").value_or(0) > 0 &&
           a.mean("epoch_time_s").value_or(0) > 0 && b.mean("epoch_time_s").value_or(0) > 0 &&
           a.runs.front()->components == b.runs.front()->components;
}

json without_hardware(json factors) {
    factors.erase("hardware");
    return factors;
}

void mark_crossings(HardwareComparison& comparison) {
    for (std::size_t i = 1; i < comparison.rows.size(); ++i) {
        const auto& before = comparison.rows[i - 1].energy_ratio;
        const auto& after = comparison.rows[i].energy_ratio;
        if ((before.value - 1) * (after.value - 1) < 0) {
            const bool sure =
                before.ci95 && after.ci95 && !before.ci95->contains(1) && !after.ci95->contains(1);
            comparison.crossings.push_back({comparison.rows[i - 1].level, comparison.rows[i].level, sure});
        }
    }
}

}  // namespace

std::vector<HardwareComparison> compare_hardware(const std::vector<Configuration>& configurations) {
    std::map<std::string, std::map<json, const Configuration*>> by_hardware;
    for (const Configuration& configuration : configurations) {
        const auto hardware = configuration.factors.find("hardware");
        if (hardware != configuration.factors.end() && hardware->is_string()) {
            by_hardware[hardware->get<std::string>()][without_hardware(configuration.factors)] =
                &configuration;
        }
    }
    std::vector<HardwareComparison> comparisons;
    for (auto a = by_hardware.begin(); a != by_hardware.end(); ++a) {
        for (auto b = std::next(a); b != by_hardware.end(); ++b) {
            for (const char* factor : {"gpus", "local_batch", "global_batch"}) {
                std::map<json, HardwareComparison> groups;
                for (const auto& [factors, one] : a->second) {
                    const auto other = b->second.find(factors);
                    const Value level = one->number(factor);
                    if (other == b->second.end() || !level || !comparable(*one, *other->second)) {
                        continue;
                    }
                    json group = factors;
                    for (const char* follower : {"gpus", "local_batch", "global_batch"}) {
                        if (follower == std::string(factor) ||
                            (follower == std::string("global_batch") && factors.contains("local_batch"))) {
                            group.erase(follower);
                        }
                    }
                    HardwareComparison& comparison = groups[group];
                    const bool simulated = one->simulated() || other->second->simulated();
                    comparison = {.first = a->first,
                                  .second = b->first,
                                  .factor = factor,
                                  .group = group,
                                  .rows = std::move(comparison.rows),
                                  .crossings = {},
                                  .simulated = comparison.simulated || simulated};
                    comparison.rows.push_back(
                        {*level, ratio(*one, *other->second, "epoch_time_s"),
                         ratio(*one, *other->second, "epoch_energy_j")});
                }
                for (auto& [group, comparison] : groups) {
                    if (comparison.rows.size() >= 2) {
                        std::ranges::sort(comparison.rows, {}, &HardwareComparison::Row::level);
                        mark_crossings(comparison);
                        comparisons.push_back(std::move(comparison));
                    }
                }
            }
        }
    }
    return comparisons;
}

}  // namespace joulemark::analysis
