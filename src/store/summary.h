// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/model.h"

namespace joulemark::store {

/// One region over all hosts of a run: what `show` lists and `export` writes. Absent means not measured.
struct RegionSummary {
    std::string name;
    std::int64_t index = 0;
    std::size_t hosts = 0, gpus = 0;
    bool open = false;
    double wall_time_s = 0;  ///< of the slowest host, each on its own clock
    std::optional<double> samples, updates, tokens;
    std::optional<double> loss, quality;  ///< averaged by samples
    std::string quality_name, quality_direction;

    std::map<std::string, double> energy_by_component_j;
    std::optional<double>
        energy_j;                   ///< GPU + CPU + DRAM as far as measured; the node's where none of them is
    std::string energy_components;  ///< what energy_j contains: "gpu+cpu"
    std::string energy_method;      ///< of the parts of energy_j: "counter", "counter+estimated"
    std::optional<double> energy_bound_j;  ///< the parts' bounds added
    std::optional<double> mean_power_w;    ///< of the same parts
    std::size_t gpus_without_energy = 0;
    std::optional<double> gpu_energy_counter_j, gpu_energy_integrated_j, gpu_energy_protocol_j;
    std::optional<double> gpu_memory_util_pct, gpu_busy_pct, sm_util_pct;  ///< means over the GPUs
    double gpu_covered_pct = 0;
    bool simulated = false, estimated = false;

    std::optional<double> joule_per_sample() const;
};

/// Every region of a run, hosts added up: `joulemark.command` first, then in the order of their start.
std::vector<RegionSummary> summarise_regions(const RunRecord& run);
/// The whole command over all hosts, or what another tool's table says of it (energy_method "imported");
/// absent when no host delivered anything.
std::optional<RegionSummary> summarise_run(const RunRecord& run);
/// Epochs that have ended.
std::int64_t epochs(const RunRecord& run);
/// "counter", "counter, simulated", ...: how energy was got, with every word a reader must not miss.
std::string method_text(const RegionSummary& summary);
/// `gpus=4 local_batch=128`.
std::string factors_text(const nlohmann::json& factors);
/// A factor's value without quotes.
std::string factor_text(const nlohmann::json& value);

}  // namespace joulemark::store
