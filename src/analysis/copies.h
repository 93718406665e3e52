// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

/// Runs that somebody copied: the same recording under two names is one measurement, not a repeat.
namespace joulemark::analysis {

/// Gives all but one of the runs with a common recording the status "copy". The one that keeps its status is
/// the one whose folder still has its name, else the first.
void mark_copied_runs(std::vector<RunMetrics>& runs);

}  // namespace joulemark::analysis
