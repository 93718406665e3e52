// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "sim/state.h"

namespace joulemark::sim {

/// Each adds its subcommand, which calls back once the line is parsed. Throw joulemark::Error.
void add_create(CLI::App& app);
void add_train(CLI::App& app);
void add_work(CLI::App& app);
void add_bursts(CLI::App& app);
void add_show(CLI::App& app);

/// The state named in JOULEMARK_SIM. Throws environment_error when there is none.
State& state_of_environment();

/// The GPUs that CUDA would show, as physical numbers: those of CUDA_VISIBLE_DEVICES (indices, UUIDs or
/// unique beginnings of one; an entry that names none ends the list, as in CUDA), or all.
std::vector<unsigned> visible_gpus(const State& state);

}  // namespace joulemark::sim
