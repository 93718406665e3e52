// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "launch/launcher.h"
#include "study/design.h"
#include "study/ledger.h"

namespace joulemark::study {

/// What the runner knows of the machine it runs on.
struct Site {
    std::filesystem::path joulemark;  ///< the program whose `run` meters each run
    Limits limits;
    std::optional<int> gpus_per_node;  ///< of this machine, for a Slurm study that does not say; nothing without GPUs
    launch::Job job;  ///< slots, root and visible GPUs; the rest comes from each run
    /// Temperature of the hottest GPU the study may use; nothing without one.
    std::function<std::optional<double>()> hottest_gpu_c;
    /// From a run's folder; nothing where nothing was measured.
    std::function<std::optional<Used>(const std::filesystem::path& run_folder)> used;
};

std::optional<int> gpus_per_node(const Study& study, const Site& site);

/// What ends a sweep here before its first run: a missing program or data set.
std::vector<Error> obstacles(const Study& study, const Site& site);

/// Why power caps and clocks cannot be set here, as far as is known without trying; "" when nothing speaks
/// against it.
std::string controls_problem(const Study& study, const Site& site);

bool sets_controls(const PlannedRun& run);

}  // namespace joulemark::study
