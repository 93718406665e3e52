// SPDX-License-Identifier: Apache-2.0
#include "parallel/ranks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "core/csv.h"
#include "core/error.h"

namespace joulemark::train {
namespace {

constexpr int most_ranks = 1'000'000;  // and hosts
constexpr int last_port = 65'535;
constexpr int last_job = std::numeric_limits<int>::max();

std::optional<int> number(const Environment& environment, const char* name, int most = most_ranks) {
    const auto text = environment(name);
    if (!text) {
        return std::nullopt;
    }
    const auto value = csv::integer(*text);
    if (!value || *value < 0 || *value > most) {
        throw bad_input("the launcher's variable {}={} is not a whole number from 0 to {}", name, *text,
                        most);
    }
    return static_cast<int>(*value);
}

/// The first variable that is set.
std::optional<int> first_number(const Environment& environment, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (const auto value = number(environment, name)) {
            return value;
        }
    }
    return std::nullopt;
}

/// "4(x2),3" of SLURM_STEP_TASKS_PER_NODE: the tasks of node `node`.
std::optional<int> slurm_tasks_on_node(std::string_view list, int node) {
    std::vector<std::string> groups;
    csv::split(list, groups);
    for (const std::string& group : groups) {
        const auto open = group.find("(x");
        const auto count = csv::integer(std::string_view(group).substr(0, open));
        const auto repeat =
            open == std::string::npos
                ? std::optional<std::int64_t>(1)
                : csv::integer(std::string_view(group).substr(open + 2, group.size() - open - 3));
        if (!count || !repeat) {
            return std::nullopt;
        }
        if (node < *repeat) {
            return static_cast<int>(*count);
        }
        node -= static_cast<int>(*repeat);
    }
    return std::nullopt;
}

void read_torchrun(const Environment& environment, Ranks& ranks) {
    ranks.launcher = Launcher::torchrun;
    ranks.local_rank = number(environment, "LOCAL_RANK").value_or(ranks.rank);
    ranks.local_size = number(environment, "LOCAL_WORLD_SIZE").value_or(1);
}

void read_mpirun(const Environment& environment, Ranks& ranks) {
    ranks.launcher = Launcher::mpirun;
    ranks.local_rank =
        first_number(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}).value_or(0);
    ranks.local_size =
        first_number(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}).value_or(1);
}

void read_srun(const Environment& environment, Ranks& ranks) {
    ranks.launcher = Launcher::srun;
    ranks.local_rank = number(environment, "SLURM_LOCALID").value_or(0);
    const auto tasks = environment("SLURM_STEP_TASKS_PER_NODE");
    const int node = number(environment, "SLURM_NODEID").value_or(0);
    ranks.local_size = tasks ? slurm_tasks_on_node(*tasks, node).value_or(1) : 1;
    const auto hosts = expand_slurm_hosts(environment("SLURM_STEP_NODELIST").value_or("localhost"));
    if (hosts.empty()) {
        throw bad_input("the launcher's variable SLURM_STEP_NODELIST names no host");
    }
    ranks.master_host = hosts.front();
    // A port that the ranks of this step agree on without talking, and that differs between steps of one
    // node.
    const std::int64_t job = number(environment, "SLURM_JOB_ID", last_job).value_or(0);
    const std::int64_t step = number(environment, "SLURM_STEP_ID", last_job).value_or(0);
    ranks.master_port = static_cast<int>(20000 + (job * 7 + step) % 20000);
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> expand_slurm_hosts(std::string_view list) {
    std::vector<std::string> hosts;
    while (!list.empty()) {
        // One element ends at a comma outside brackets.
        std::size_t end = 0;
        for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end) {
            inside = list[end] == '[' || (inside && list[end] != ']');
        }
        const std::string_view element = list.substr(0, end);
        list.remove_prefix(std::min(list.size(), end + 1));
        const auto open = element.find('[');
        const auto close = element.find(']');
        if (open == std::string_view::npos || close == std::string_view::npos) {
            hosts.emplace_back(element);
            continue;
        }
        std::vector<std::string> ranges;
        csv::split(element.substr(open + 1, close - open - 1), ranges);
        for (const std::string& range : ranges) {
            const auto dash = std::min(range.find('-'), range.size());
            const auto first = csv::integer(std::string_view(range).substr(0, dash)).value_or(0);
            const auto last = dash < range.size()
                                  ? csv::integer(std::string_view(range).substr(dash + 1)).value_or(first)
                                  : first;
            if (first < 0 || last - first >= most_ranks) {
                throw bad_input("the launcher's list of hosts {} is beyond {} hosts", element, most_ranks);
            }
            for (auto number = first; number <= last; ++number) {
                hosts.push_back(fmt::format("{}{:0{}}{}", element.substr(0, open), number, dash,
                                            element.substr(close + 1)));
            }
        }
    }
    return hosts;
}

Ranks ranks_from(const Environment& environment) {
    Ranks ranks;
    const auto take = [&](std::initializer_list<const char*> rank_names,
                          std::initializer_list<const char*> size_names) {
        const auto rank = first_number(environment, rank_names);
        const auto size = first_number(environment, size_names);
        if (!rank || !size) {
            return false;
        }
        ranks.rank = *rank;
        ranks.size = *size;
        return true;
    };
    if (environment("LOCAL_RANK") && take({"RANK"}, {"WORLD_SIZE"})) {
        read_torchrun(environment, ranks);
    } else if (take({"OMPI_COMM_WORLD_RANK"}, {"OMPI_COMM_WORLD_SIZE"})) {
        read_mpirun(environment, ranks);
    } else if (environment("SLURM_STEP_ID") &&
               take({"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})) {
        read_srun(environment, ranks);
    } else if (take({"PMI_RANK", "PMIX_RANK"}, {"PMI_SIZE"})) {
        read_mpirun(environment, ranks);
    }
    if (ranks.launcher == Launcher::none && number(environment, "WORLD_SIZE").value_or(1) > 1) {
        throw bad_input(
            "WORLD_SIZE says {} ranks, but neither torchrun, mpirun nor srun started this one: start it "
            "through "
            "one of them, or unset WORLD_SIZE",
            *environment("WORLD_SIZE"));
    }
    if (ranks.size < 1 || ranks.rank >= ranks.size) {
        throw bad_input("the launcher's variables say rank {} of {} ranks", ranks.rank, ranks.size);
    }
    ranks.local_size = std::clamp(ranks.local_size, 1, ranks.size);
    if (const auto host = environment("MASTER_ADDR")) {
        ranks.master_host = *host;
    }
    if (const auto port = number(environment, "MASTER_PORT", last_port)) {
        ranks.master_port = *port;
    }
    return ranks;
}

int default_threads(int usable_cores, int online_cores, int local_size) {
    const bool bound = usable_cores < online_cores && usable_cores * local_size <= online_cores;
    return std::max(1, bound ? usable_cores : usable_cores / local_size);
}

}  // namespace joulemark::train
