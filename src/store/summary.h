// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/mean.h"
#include "store/model.h"
#include "store/window_sum.h"

namespace joulemark::store {

/// One region over all hosts of a run: what `show` lists and `export` writes. Absent means not measured.
struct RegionSummary {
    std::string name;
    std::int64_t index = 0;
    std::size_t hosts = 0, gpus = 0;
    bool open = false, on_all_hosts = false;  ///< of the run, of which none is missing
    Value wall_time_s;  ///< of the slowest host, each on its own clock
    Value samples, updates, tokens;
    Mean loss, quality;  ///< by samples
    std::string quality_name, quality_direction;

    WindowSum sum;   ///< all that was measured
    Value energy_j;  ///< of `sum`, where no host and no device of its components is missing
    Value energy_bound_j, mean_power_w, joule_per_sample;
    std::string energy_components;  ///< what energy_j contains: "gpu+cpu"
    std::string energy_method;      ///< of these: "counter", "counter+estimated"; "imported" from a table
    std::string no_total = "not measured";  ///< why there is no energy_j: "partly measured: gpu"; else ""
};

/// What follows from the windows of the command and its epochs, or from a row of another tool's table;
/// docs/methods.md, "Metrics".
struct RunTotals {
    bool imported = false;
    std::size_t epochs = 0, epochs_timed = 0;  ///< that ended on every host that has them; behind epoch_time_s
    Value wall_time_s, training_speed_s, epoch_time_s, samples_per_s;
    Value energy_j, epoch_energy_j, joule_per_sample, joule_per_token, samples_per_j;
    Value gpu_hours, energy_per_gpu_hour_kwh, mean_power_w;
    Value samples_per_gpu_hour, updates_per_gpu_hour;
    bool energy_uncertain = false;  ///< gaps leave more open than rates and summaries over repeats may bear
};

struct RunSummary : RunTotals {
    std::optional<RegionSummary> command;     ///< absent when no host delivered anything
    std::vector<RegionSummary> timed_epochs;  ///< by index
};

RunSummary summarise_run(const RunRecord& run);
/// Every region of a run, hosts added up: `joulemark.command` first, then in the order of their start.
std::vector<RegionSummary> summarise_regions(const RunRecord& run);
/// Expected hosts of which nothing was received.
std::vector<std::string> missing_hosts(const RunRecord& run);
/// A factor as a number, also from text that is one.
Value number(const nlohmann::json& factors, std::string_view name);
/// `gpus=4 local_batch=128`.
std::string factors_text(const nlohmann::json& factors);
/// A factor's value without quotes.
std::string factor_text(const nlohmann::json& value);

}  // namespace joulemark::store
