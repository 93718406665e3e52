// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/study.h"

namespace joulemark::study {

/// What this machine allows, where that is known before a run is tried; a level outside is skipped.
struct Limits {
    std::optional<int> gpus;  ///< usable GPUs; nothing: there are none, and ranks run on CPUs
    std::optional<Range> power_cap_w;
    std::optional<double> sm_clock_max_mhz;
};

struct PlannedRun {
    std::string id;  ///< from the configuration and the repeat alone: the same in every call
    const Series* series = nullptr;
    const Workload* workload = nullptr;
    Configuration factors;  ///< workload, series, the study's factors, and the batch that follows from them
    int gpus = 1;
    int repeat = 1;
    int position = 1;                  ///< in the order of execution
    std::int64_t seed = 0;             ///< for training
    std::string skipped;               ///< why this run cannot be made; "" when it can
    std::vector<std::string> command;  ///< of the workload, placeholders filled, program not yet located
};

/// Every run of the study in the order of execution. The order is a pass over all configurations per repeat;
/// with order random each pass is shuffled (randomised blocks), so that drift of the machine meets all
/// configurations alike. Throws bad_input when the study plans more than 100 000 runs. The runs point into
/// `study`.
std::vector<PlannedRun> plan(const Study& study, const Limits& limits);

/// "gpus 4, local_batch 128": the factors that tell runs of this study apart, for people.
std::string describe(const PlannedRun& run);

/// The seed of a run's simulated GPUs: of the study's and the run's, so that noise is independent between
/// runs.
std::int64_t simulation_seed(const Simulation& simulation, const std::string& run);

}  // namespace joulemark::study
