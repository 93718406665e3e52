// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::train {

enum class Launcher { none, torchrun, mpirun, srun };

/// Which of the job's processes this one is, as its launcher tells in the environment.
struct Ranks {
    Launcher launcher = Launcher::none;
    int rank = 0;
    int size = 1;
    int local_rank = 0;  ///< among the ranks of this node
    int local_size = 1;
    /// Where rank 0 listens for the others (GPUs only). Empty: the launcher does not say, MPI has to.
    std::string master_host;
    int master_port = 0;
};

using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// Reads torchrun's, mpirun's (OpenMPI; PMI) and srun's variables, in this order; one rank without any. A
/// shell inside `salloc` or `sbatch` has SLURM_NTASKS but is no rank: only SLURM_STEP_ID with SLURM_PROCID
/// counts. Throws bad_input when a launcher's variables contradict each other.
Ranks ranks_from(const Environment& environment);

/// The hosts of a Slurm list: "gpu[01-03,07],login1" gives gpu01 gpu02 gpu03 gpu07 login1.
std::vector<std::string> expand_slurm_hosts(std::string_view list);

/// Threads for one rank: the cores this process may use, shared among the node's ranks unless the launcher
/// has already bound each rank to cores of its own.
int default_threads(int usable_cores, int online_cores, int local_size);

}  // namespace joulemark::train
