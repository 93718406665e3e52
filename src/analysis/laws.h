// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/configurations.h"
#include "analysis/model.h"

namespace joulemark::analysis {

/// Laws of epoch time and energy over GPUs, cap, clock and batch, for every series of the configurations:
/// all forms that could be fitted, one of them selected, or one entry that says why there is none.
std::vector<Law> laws_of(const std::vector<Configuration>& configurations);

/// Speed-up and efficiency of every series over GPUs at one data-set size, against its fewest GPUs.
std::vector<ScalingTable> scaling_of(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
