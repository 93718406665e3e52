// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// The identity behind energy_per_gpu_hour, stated wherever it is shown.
inline constexpr std::string_view energy_per_gpu_hour_identity =
    "Energy per GPU hour is the mean total power per GPU: what a line through these points shows is how "
    "constant "
    "that power is, not that energy grows with GPU hours.";

/// Energy of whole runs against GPU hours: one line per series, and one through all. A series is what shares
/// workload and hardware, and the label `series` where a table gives one.
std::vector<EnergyLine> energy_per_gpu_hour(const std::vector<Configuration>& configurations);

/// Energy of whole runs against the size of the data set, per series in which it varies.
std::vector<EnergyLine> energy_per_sample(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
