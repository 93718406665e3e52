// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace joulemark::launch {

/// What whoever started this process says about its place in the job.
struct RankEnvironment {
    int rank = 0;
    int world_size = 1;
    int local_rank = 0;
    std::optional<int> local_world_size;  ///< ranks on this node, where the launcher tells
    std::string node;                     ///< node_name()
    std::string job_id;    ///< SLURM_JOB_ID, TORCHELASTIC_RUN_ID or the MPI job; "" outside a job
    std::string step;      ///< SLURM_STEP_ID; "" outside a step
    std::string launcher;  ///< torchrun | openmpi | pmi | slurm | none: whose variables were read
    std::string warning = {};  ///< of a variable that is not believed; "" if none
};

/// Looks a variable up; nullptr when unset. Tests pass a table, everyone else std::getenv.
using Lookup = std::function<const char*(const char*)>;

/// Reads the variables of torchrun, Open MPI, PMI (MPICH, Intel MPI) and Slurm, in this order: the launcher
/// nearest to the process wins (mpirun inside a Slurm step sets both). A set of variables counts only when it
/// is complete and consistent. A batch script has SLURM_PROCID without being a rank: only a step counts.
RankEnvironment rank_environment(const Lookup& lookup);
RankEnvironment rank_environment();

/// Whether a text is a host's name, and so the name of its folder: letters, digits, '-', '_' and '.'.
bool is_host_name(std::string_view text);

/// SLURMD_NODENAME where it is a host's name, else that of this host: one name per sampler, also where several
/// slurmd share a host.
std::string node_name(const Lookup& lookup);

}  // namespace joulemark::launch
