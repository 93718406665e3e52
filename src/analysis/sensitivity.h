// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// What each unmeasured part could add to the energy of all usable runs, as a band from a low and a high
/// value of it, and whether each conclusion ("this level needs the least energy") holds at both ends. Energy
/// is linear in every such value, so what holds at both ends holds between them.
std::vector<Sensitivity> sensitivity_of(const std::vector<RunMetrics>& runs,
                                        const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
