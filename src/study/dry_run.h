// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/design.h"
#include "study/remaining.h"

namespace joulemark::study {

/// What `joulemark sweep --dry-run` prints: every run with its expected GPU hours and energy, and the totals
/// over the runs whose expectation is known. `rest` is what the results directory still lacks, `problems` are
/// sentences about what would keep runs from being made.
///
/// JSON: `{study, runs[]{run, position, repeat, series, workload, factors{}, gpus, nodes, gpu_hours,
/// gpu_hours_source, energy_kwh[2], energy_is_bound, energy_source, skipped, command[]}, totals{runs,
/// skipped, gpu_hours, runs_without_gpu_hours, energy_kwh[2], runs_without_energy}, remaining{done, left,
/// elapsed_s, elapsed_source, disk_bytes}, sources[], problems[]}`; what is
/// unknown is null.
nlohmann::json dry_run_json(const Study& study, const std::vector<PlannedRun>& runs,
                            const Remaining& rest, const std::vector<std::string>& problems);
std::string dry_run_text(const Study& study, const std::vector<PlannedRun>& runs, const Remaining& rest,
                         const std::vector<std::string>& problems);

/// Joules of "40kWh", "500 Wh", "3.6MJ"; nothing for anything else. Without a unit it is nothing too.
std::optional<double> parse_energy_j(std::string_view text);

}  // namespace joulemark::study
