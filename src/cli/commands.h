// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "cli/command.h"

namespace joulemark::cli {

/// The commands, in the order a study goes: one function each, in the file of its name.
int run_command(const Arguments& arguments);
int restore_command(const Arguments& arguments);
int version_command(const Arguments& arguments);

inline constexpr std::array commands{
    Command{"run", "meters any command", run_command},
    Command{"restore", "puts back GPU settings that a killed run left changed", restore_command},
    Command{"version", "prints the version", version_command},
};

}  // namespace joulemark::cli
