// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/model.h"

namespace joulemark::cli {

/// The analysis for people: tables with a line of what they mean, warnings last. Factors that never vary are
/// said once.
std::string analysis_text(const analysis::Model& model);

}  // namespace joulemark::cli
