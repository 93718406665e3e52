// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"
#include "store/database.h"

namespace joulemark::analysis {

/// The metrics of all runs of the merge. Runs are shared out to a thread per core (eight at most), each with
/// a connection of its own: reading is most of the work. Records are dropped as soon as their metrics are
/// known.
std::vector<RunMetrics> load_metrics(const store::Database& database);

}  // namespace joulemark::analysis
