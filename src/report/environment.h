// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "store/model.h"

namespace joulemark::report {

/// The machines that the runs were made on, and how each was metered:
///
///   {machines[]: {hosts[], simulated, hardware{}, software{}, devices[], sources[], unavailable[]}}
///
/// as the keys of run.json (docs/schema.md), a source completed by `achieved_hz`, the mean over the runs.
/// Hosts that differ in name only are one machine. Keys that a run lacks are left out.
nlohmann::json environment(const std::vector<store::RunRecord>& runs);

}  // namespace joulemark::report
