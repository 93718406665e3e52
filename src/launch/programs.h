// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace joulemark::launch {

/// This program's own file, symbolic links resolved.
std::filesystem::path own_program();

/// `name` as an executable file beside this program, else the first on PATH. A name with a slash is taken
/// as it is. Nothing when there is none.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// The look-alike libnvidia-ml of simulated GPUs: beside this program in a build tree (../sim),
/// or where it is installed (../lib/joulemark/sim). Nothing when it was not built.
std::optional<std::filesystem::path> simulated_nvml();

}  // namespace joulemark::launch
