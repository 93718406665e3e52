// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/csv.h"
#include "sim/commands.h"

namespace joulemark::sim {
namespace {

std::optional<unsigned> named_gpu(const State& state, const std::string& name) {
    if (const auto index = csv::integer(name)) {
        const bool exists = *index >= 0 && *index < static_cast<std::int64_t>(state.gpus());
        return exists ? std::optional(state.reordered(static_cast<unsigned>(*index))) : std::nullopt;
    }
    std::optional<unsigned> found;
    for (unsigned gpu = 0; gpu < state.gpus() && name.starts_with("GPU-"); ++gpu) {
        if (state.uuid(gpu).starts_with(name)) {
            if (found) {
                return std::nullopt;  // ambiguous
            }
            found = gpu;
        }
    }
    return found;
}

}  // namespace

State& state_of_environment() {
    const char* path = std::getenv("JOULEMARK_SIM");
    if (path == nullptr || *path == '\0') {
        throw environment_error(
            "JOULEMARK_SIM does not name a file of simulated GPUs; make one with `joulemark-sim create`");
    }
    const auto state = State::open(path);
    if (!state) {
        throw environment_error("{}; {}", state.failure().reason, state.failure().remedy);
    }
    return **state;
}

std::vector<unsigned> visible_gpus(const State& state) {
    std::vector<unsigned> gpus;
    const char* names = std::getenv("CUDA_VISIBLE_DEVICES");
    if (names == nullptr) {
        for (unsigned index = 0; index < state.gpus(); ++index) {
            gpus.push_back(state.reordered(index));
        }
        return gpus;
    }
    std::vector<std::string> entries;
    csv::split(names, entries);
    for (const std::string& entry : entries) {
        const auto gpu = named_gpu(state, entry);
        if (!gpu || std::ranges::find(gpus, *gpu) != gpus.end()) {
            break;
        }
        gpus.push_back(*gpu);
    }
    return gpus;
}

}  // namespace joulemark::sim
