// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace joulemark::cli {

/// `joulemark doctor --calibrate -- CMD`: meters CMD, which marks bursts of load as regions, fits each GPU's
/// counter to them and keeps refresh, lag and window for later runs. Throws Error where nothing can be
/// fitted.
int calibrate(const std::vector<std::string>& command, bool json);

}  // namespace joulemark::cli
