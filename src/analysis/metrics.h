// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/model.h"
#include "store/model.h"

namespace joulemark::analysis {

/// The metrics of one run from what its hosts delivered: energies add over hosts, a time is that of the
/// slowest host, a missing host leaves no total. Needs no other run, so that runs can be read one by one.
RunMetrics run_metrics(const store::RunRecord& record);

}  // namespace joulemark::analysis
