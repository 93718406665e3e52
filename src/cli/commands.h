// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "cli/command.h"

namespace joulemark::cli {

/// The commands, in the order a study goes: one function each, in the file of its name.
int sweep_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int version_command(const Arguments& arguments);

inline constexpr std::array commands{
    Command{"sweep", "makes the runs of a study file, and goes on where it stopped", sweep_command},
    Command{"train", "runs joulemark-train: the built-in workloads", train_command},
    Command{"version", "prints the version", version_command},
};

}  // namespace joulemark::cli
