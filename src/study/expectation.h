// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "study/design.h"

namespace joulemark::study {

/// What a run will take, before it is made. Absent is unknown, never 0.
struct Expected {
    std::optional<double> gpu_hours;
    std::string gpu_hours_source;
    std::optional<Range> energy_kwh;
    bool energy_is_bound = false;  ///< only `energy_kwh->high` is known: the power cap times the GPU hours
    std::string energy_source;
};

/// From the nearest `expect` block (workload, then series), and for the energy from published kWh per GPU
/// hour of the model on the accelerator (Huber et al. 2025) where the block gives none.
Expected expect(const PlannedRun& run);

}  // namespace joulemark::study
