// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "cli/command.h"

namespace joulemark::cli {

/// The commands, in the order a study goes: one function each, in the file of its name.
int version_command(const Arguments& arguments);

inline constexpr std::array commands{
    Command{"version", "prints the version", version_command},
};

}  // namespace joulemark::cli
