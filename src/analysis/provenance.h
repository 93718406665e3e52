// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/model.h"
#include "store/model.h"
#include "store/window_sum.h"

namespace joulemark::analysis {

/// Where the numbers of a run come from (product.md, "Provenance of every number"): per component the
/// method, scope, sources, resolution, rates, coverage, bound and stated accuracy; for the total what it
/// contains and lacks; for times how epochs were marked.
nlohmann::json run_provenance(const store::RunRecord& record, const RunMetrics& metrics,
                              const store::WindowSum& command);

/// "GPU + CPU; not measured: DRAM, network, PSU, cooling".
std::string contents_text(const std::vector<std::string>& contains, const std::vector<std::string>& lacks);

}  // namespace joulemark::analysis
