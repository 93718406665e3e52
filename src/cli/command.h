// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace joulemark::cli {

/// What follows the command's name. `child` is what follows the first `--`, split off before CLI11 sees
/// the line (it rewrites bracketed arguments); `has_separator` tells `--` with nothing behind it from none.
struct Arguments {
    std::vector<std::string> options;
    std::vector<std::string> child;
    bool has_separator = false;
};

/// One command of the tool: a row of the list in main.cpp, a function in a file of its own.
struct Command {
    std::string_view name;
    std::string_view summary;
    int (*run)(const Arguments& arguments);  ///< the exit status; throws joulemark::Error
};

/// Parses, answers --help (returns false, the caller returns 0), and turns CLI11's complaints into one
/// bad_input sentence. `app` carries the command's name, description and, in its footer, an example; `rest` is
/// what the command line takes that CLI11 does not see.
bool parse(CLI::App& app, const Arguments& arguments, std::string_view rest = "");

}  // namespace joulemark::cli
