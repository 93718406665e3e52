// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/model.h"
#include "store/model.h"

namespace joulemark::analysis {

/// Idle power before and after the command, and whether the GPUs had settled thermally while it was timed:
/// told beside the energies and never subtracted from them. docs/methods.md, "Idle power and steady state".
Baseline baseline(const store::RunRecord& record, std::int64_t warmup_epochs);

}  // namespace joulemark::analysis
