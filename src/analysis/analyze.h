// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"
#include "store/model.h"

namespace joulemark::analysis {

/// The whole analysis of runs whose metrics are known: configurations, laws, lines, warnings.
Model analyze(std::vector<RunMetrics> runs);

/// The same from what the store holds.
Model analyze(const std::vector<store::RunRecord>& records);

/// The document of `analyze --json`; docs/analyze.schema.json describes it.
nlohmann::json to_json(const Model& model);

}  // namespace joulemark::analysis
