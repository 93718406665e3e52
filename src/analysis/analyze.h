// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
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
/// The same document, written piece by piece: a study of many regions is never in memory as JSON.
void write_json(const Model& model, std::FILE* file);

}  // namespace joulemark::analysis
