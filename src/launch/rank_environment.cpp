// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "core/csv.h"
#include "launch/hostlist.h"

namespace joulemark::launch {
namespace {

/// The names under which one launcher tells a process its place.
struct Variables {
    const char* launcher;
    const char* rank;
    const char* world_size;
    const char* local_rank;
    const char* local_world_size;
    const char* job_id;
};

constexpr const char* node_variable = "SLURMD_NODENAME";

constexpr std::array launchers{
    Variables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    Variables{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
              "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    Variables{"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    Variables{"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID"},
};

std::string text(const Lookup& lookup, const char* name) {
    const char* value = name == nullptr ? nullptr : lookup(name);
    return value == nullptr ? "" : value;
}

std::optional<int> integer(const Lookup& lookup, const char* name) {
    const auto value = csv::integer(text(lookup, name));
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

}  // namespace

bool is_host_name(std::string_view text) {
    constexpr std::size_t longest = 253;
    return !text.empty() && text.size() <= longest && text.front() != '.' &&
           std::ranges::all_of(text, [](unsigned char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                      c == '_' || c == '.';
           });
}

std::string node_name(const Lookup& lookup) {
    if (std::string name = text(lookup, node_variable); is_host_name(name)) {
        return name;
    }
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 && is_host_name(name.data()) ? name.data()
                                                                                       : "localhost";
}

RankEnvironment rank_environment(const Lookup& lookup) {
    RankEnvironment result;
    result.node = node_name(lookup);
    if (const std::string name = text(lookup, node_variable); !name.empty() && !is_host_name(name)) {
        result.warning = fmt::format("{}='{}' is no host name: this node is called {}", node_variable, name,
                                     result.node);
    }
    result.launcher = "none";
    result.job_id = text(lookup, "SLURM_JOB_ID");
    result.step = text(lookup, "SLURM_STEP_ID");
    for (const Variables& variables : launchers) {
        const auto rank = integer(lookup, variables.rank);
        const auto world_size = integer(lookup, variables.world_size);
        const auto local_rank = integer(lookup, variables.local_rank);
        if (!rank || !world_size || *rank < 0 || *rank >= *world_size) {
            continue;
        }
        // MPICH outside Intel MPI tells no local rank; one task then has local rank 0.
        if (!local_rank && *world_size > 1) {
            continue;
        }
        result.rank = *rank;
        result.world_size = *world_size;
        result.local_rank = local_rank.value_or(0);
        result.local_world_size = integer(lookup, variables.local_world_size);
        result.launcher = variables.launcher;
        if (const auto node = integer(lookup, "SLURM_NODEID"); node && result.launcher == "slurm") {
            result.local_world_size = count_on_node(text(lookup, "SLURM_STEP_TASKS_PER_NODE"), *node);
        }
        if (result.job_id.empty()) {
            result.job_id = text(lookup, variables.job_id);
        }
        break;
    }
    return result;
}

RankEnvironment rank_environment() {
    return rank_environment([](const char* name) { return std::getenv(name); });
}

}  // namespace joulemark::launch
