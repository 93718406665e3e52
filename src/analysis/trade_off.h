// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Of all configurations of each workload with an epoch time and an energy of the same components, the
/// fastest and the most frugal, and whether repeats tell them apart.
std::vector<TradeOff> trade_offs(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
