// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Gives each run that was metered on a device while another run was too the warning `device_shared`: a device's
/// energy does not tell for whom it was drawn, so it is in the energy of both. Copies are not runs of their own.
void warn_of_shared_devices(std::vector<RunMetrics>& runs);

}  // namespace joulemark::analysis
