// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Pairs of hardware on the same workload: at every common level of GPUs or batch, which needs less energy
/// per epoch and which is faster, and between which levels the order of energies turns. Only over equal
/// components; a difference counts where the 95 % intervals of a Welch test agree, single runs are never
/// significant.
std::vector<HardwareComparison> compare_hardware(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
