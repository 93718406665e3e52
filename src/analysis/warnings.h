// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Warnings about one run: its status, sensors and coverage.
std::vector<Warning> run_warnings(const RunMetrics& run);

/// Warnings that need the whole study: repeats, drift, outliers, unlike components, seeds. Those of runs
/// come first, equal ones of many runs in one line.
std::vector<Warning> study_warnings(const Model& model);

}  // namespace joulemark::analysis
