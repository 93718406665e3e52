// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "store/merge.h"

namespace joulemark::cli {

/// Merges a results directory for a command that reads it; what the user should know goes to stderr, and on
/// a terminal the progress too.
store::Merged open_results(const std::filesystem::path& dir);

}  // namespace joulemark::cli
