// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace joulemark::store::imports {

/// FIELD=VALUE pairs of --map and --set.
using Pairs = std::map<std::string, std::string>;

/// "a=b,c=d" of one or several options; throws bad_input naming `option` when a part is no pair or a field
/// is given twice.
Pairs parse_pairs(const std::vector<std::string>& texts, std::string_view option);

/// Value of --set as a factor: a number where it is one.
nlohmann::json factor_value(std::string_view text);

/// The `workload hardware gpus ...` of --set that make up a configuration; throws bad_input for a field that
/// is no factor.
nlohmann::json factors_of(const Pairs& set);

/// What an import brought in, for the user.
struct Imported {
    std::vector<std::string> runs;
    std::vector<std::string> notes;
};

/// Files of one imported run. The host is called "imported".
struct RunFolder {
    std::string run;
    nlohmann::json run_json;                   ///< completed by write()
    std::map<std::string, std::string> files;  ///< gpu.csv, regions.csv: name to content
    std::int64_t start_ns = 0, end_ns = 0;

    /// Replaces what an earlier import of the same data left: importing twice changes nothing.
    void write(const std::filesystem::path& results) const;
};

/// "<stem>-<8 hex digits>": equal for equal content and settings, so that a second import finds the first.
std::string run_stem(const std::filesystem::path& file, std::string_view content, const Pairs& map,
                     const Pairs& set);

}  // namespace joulemark::store::imports
