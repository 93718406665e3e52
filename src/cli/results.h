// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <CLI/CLI.hpp>

#include "store/merge.h"

namespace joulemark::cli {

/// Merges a results directory for a command that reads it; what the user should know goes to stderr, and on
/// a terminal the progress too, unless `quiet`.
store::Merged open_results(const std::filesystem::path& dir, bool quiet);

/// The flag of every command that reads results.
inline void add_quiet(CLI::App& app, bool& quiet) {
    app.add_flag("-q,--quiet", quiet, "No notes and no progress on stderr");
}

}  // namespace joulemark::cli
