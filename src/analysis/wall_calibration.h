// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Where some runs have a wall meter on every host beside their components: the wall's mean power per host as
/// a line over that of the measured components, per hardware and set of components (docs/methods.md,
/// "Calibration by wall power"). Needs three runs.
std::vector<WallCalibration> wall_calibrations(const std::vector<RunMetrics>& runs);

}  // namespace joulemark::analysis
