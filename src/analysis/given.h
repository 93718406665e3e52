// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/model.h"

namespace joulemark::analysis {

/// What the table of another tool says about a row's results: the components of its energy, and of how many
/// repeats, that scatter by how much, it is the mean.
void add_given(RunMetrics& run);

}  // namespace joulemark::analysis
