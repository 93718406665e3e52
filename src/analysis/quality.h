// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Per series over the global batch in which quality was told: the largest batch up to which quality is not
/// significantly worse than at the best smaller one, and the batch beyond. A knee needs repeats over training
/// seeds at every level; else the series is only described.
std::vector<BatchKnee> batch_knees(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
