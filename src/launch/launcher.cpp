// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace joulemark::launch {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, std::span<const std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
}

Words mpirun(const Job& job) {
    Words words{"mpirun", "-n", std::to_string(job.ranks)};
    if (std::ranges::find(job.arguments, "--bind-to") == job.arguments.end()) {
        // OpenMPI would tie one or two ranks to a core each, and their threads with them.
        append(words, Words{"--bind-to", "none"});
    }
    if (job.root) {
        words.emplace_back("--allow-run-as-root");
    }
    if (job.ranks > job.slots) {
        words.emplace_back("--oversubscribe");
    }
    append(words, job.arguments);
    return words;
}

Words srun(const Job& job) {
    Words words{"srun",
                "-N",
                std::to_string(nodes_needed(job.ranks, job.gpus_per_node)),
                "-n",
                std::to_string(job.ranks),
                "--ntasks-per-node",
                std::to_string(std::min(job.ranks, job.gpus_per_node)),
                "--kill-on-bad-exit=1"};
    append(words, job.arguments);
    return words;
}

}  // namespace

std::string_view name_of(Launcher launcher) {
    return launcher_names[static_cast<std::size_t>(launcher)];
}

std::optional<Launcher> launcher_named(std::string_view name) {
    const auto found = std::ranges::find(launcher_names, name);
    if (found == std::end(launcher_names)) {
        return std::nullopt;
    }
    return static_cast<Launcher>(found - std::begin(launcher_names));
}

int nodes_needed(int ranks, int gpus_per_node) {
    return (ranks + gpus_per_node - 1) / gpus_per_node;
}

Invocation command_line(Launcher launcher, const Job& job, std::span<const std::string> meter,
                        std::span<const std::string> command) {
    Invocation invocation;
    if (launcher == Launcher::slurm) {
        invocation.command = srun(job);
    }
    append(invocation.command, meter);
    invocation.command.emplace_back("--");
    if (launcher == Launcher::mpirun) {
        append(invocation.command, mpirun(job));
    }
    append(invocation.command, command);
    // Under Slurm the allocation decides which GPUs each task sees.
    if (launcher != Launcher::slurm && !job.visible_gpus.empty()) {
        const std::size_t count = std::min(job.visible_gpus.size(), static_cast<std::size_t>(job.ranks));
        invocation.environment["CUDA_VISIBLE_DEVICES"] =
            fmt::format("{}", fmt::join(std::span(job.visible_gpus).first(count), ","));
    }
    return invocation;
}

std::vector<std::string> visible_gpus(const char* cuda_visible_devices, std::size_t gpus_on_node) {
    std::vector<std::string> entries;
    if (cuda_visible_devices == nullptr) {
        for (std::size_t index = 0; index < gpus_on_node; ++index) {
            entries.push_back(std::to_string(index));
        }
        return entries;
    }
    std::string_view rest = cuda_visible_devices;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view entry = rest.substr(0, comma);
        if (entry.empty() || entry.front() == '-') {
            break;
        }
        entries.emplace_back(entry);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return entries;
}

}  // namespace joulemark::launch
