// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::launch {

enum class Launcher { local, mpirun, slurm };

inline constexpr std::string_view launcher_names[] = {"local", "mpirun", "slurm"};
std::string_view name_of(Launcher launcher);
std::optional<Launcher> launcher_named(std::string_view name);

/// What the job asks for and where it is started.
struct Job {
    int ranks = 1;
    int gpus_per_node = 1;  ///< slurm: ranks per node
    int slots = 1;          ///< mpirun: ranks that it starts without --oversubscribe
    bool root = false;      ///< mpirun refuses root unless told
    std::vector<std::string> visible_gpus =
        {};  ///< CUDA_VISIBLE_DEVICES entries this process may use; none: no GPU
    std::vector<std::string> arguments = {};  ///< further options of mpirun or srun
};

/// A program to start: its words, and what its environment has on top of the starter's.
struct Invocation {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment = {};
};

/// The one command line that starts `command` under the meter. `meter` is `joulemark run OPTIONS` without its
/// `--`. local and mpirun put the meter around everything on this node; slurm puts srun outside, so that each
/// rank has a meter, of which one per node samples.
Invocation command_line(Launcher launcher, const Job& job, std::span<const std::string> meter,
                        std::span<const std::string> command);

/// Nodes that `ranks` need at `gpus_per_node`.
int nodes_needed(int ranks, int gpus_per_node);

/// The entries of CUDA_VISIBLE_DEVICES this process may use: those of the variable where it is set (up to the
/// first empty or negative one, as CUDA reads it), else 0 .. gpus_on_node-1.
std::vector<std::string> visible_gpus(const char* cuda_visible_devices, std::size_t gpus_on_node);

}  // namespace joulemark::launch
