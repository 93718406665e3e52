// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "analysis/footprint.h"
#include "store/merge.h"

namespace joulemark::cli {

/// Merges a results directory for a command that reads it; what the user should know goes to stderr, and on
/// a terminal the progress too, unless `quiet`.
store::Merged open_results(const std::filesystem::path& dir, bool quiet);

/// The flag of every command that reads results.
inline void add_quiet(CLI::App& app, bool& quiet) {
    app.add_flag("-q,--quiet", quiet, "No notes and no progress on stderr");
}

/// --carbon and --price, of every command that analyses results.
void add_footprint_options(CLI::App& app, std::string& carbon, std::optional<double>& price);
/// What --carbon says; nothing where it was not given.
std::optional<analysis::CarbonIntensity> intensity_of(const std::string& carbon);

}  // namespace joulemark::cli
