// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace joulemark::cli {

/// `joulemark doctor --calibrate [-- CMD]`: meters CMD, which marks bursts of load as regions, fits the
/// counter and the power readings of each GPU to them and keeps refresh, lag and window for later runs.
/// Without CMD it loads simulated GPUs by joulemark-sim, others by `joulemark-train square-wave`. Throws
/// Error where nothing can be fitted.
int calibrate(const std::vector<std::string>& command, bool json);

}  // namespace joulemark::cli
