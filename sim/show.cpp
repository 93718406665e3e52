// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/units.h"
#include "sim/commands.h"

namespace joulemark::sim {
namespace {

struct ShowLine {
    std::string path;
    std::optional<std::int64_t> from_ns, to_ns;
    bool json = false;
};

void show(const ShowLine& line) {
    const auto opened = State::open(line.path);
    if (!opened) {
        throw environment_error("{}; {}", opened.failure().reason, opened.failure().remedy);
    }
    const State& state = **opened;
    const std::int64_t now = state.now_ns();
    const std::int64_t from = line.from_ns.value_or(state.start_ns());
    const std::int64_t to = line.to_ns.value_or(now);
    if (to < from || to > now) {
        throw bad_input("--from-ns {} and --to-ns {} have to lie in order, and not after now ({})", from, to,
                        now);
    }
    nlohmann::json document = {{"simulated", true},
                               {"accelerator", state.profile().key},
                               {"clock", state.real_clock() ? "real" : "virtual"},
                               {"seed", state.seed()},
                               {"start_ns", state.start_ns()},
                               {"now_ns", now},
                               {"from_ns", from},
                               {"to_ns", to},
                               {"faults", nlohmann::json::array()},
                               {"gpus", nlohmann::json::array()}};
    for (const Fault& fault : state.faults()) {
        document["faults"].push_back(to_string(fault));
    }
    for (unsigned gpu = 0; gpu < state.gpus(); ++gpu) {
        const Segment* load = state.load_at(gpu, now);
        document["gpus"].push_back(
            {{"gpu", gpu},
             {"index", state.reordered(gpu)},
             {"uuid", state.uuid(gpu)},
             {"power_limit_w", state.limit_w(gpu)},
             {"sm_clock_limit_mhz", state.clock_limit_mhz(gpu)},
             {"power_w", load == nullptr ? state.profile().idle_power_w : load->power_w},
             {"energy_j", state.energy_j(gpu, to) - state.energy_j(gpu, from)},
             {"busy_s", state.busy_s(gpu, to) - state.busy_s(gpu, from)}});
    }
    if (line.json) {
        fmt::print("{}\n", document.dump(2));
        return;
    }
    fmt::print("{} x {}, {} clock, {:.3f} s (simulated)\n", state.gpus(), state.profile().name,
               document["clock"].get<std::string>(), seconds(to - from));
    for (const auto& gpu : document["gpus"]) {
        fmt::print("gpu {}: {:.3f} J, busy {:.3f} s, limits {:g} W and {:g} MHz\n",
                   gpu["index"].get<unsigned>(), gpu["energy_j"].get<double>(), gpu["busy_s"].get<double>(),
                   gpu["power_limit_w"].get<double>(), gpu["sm_clock_limit_mhz"].get<double>());
    }
}

}  // namespace

void add_show(CLI::App& app) {
    auto line = std::make_shared<ShowLine>();
    CLI::App* command =
        app.add_subcommand("show", "State of simulated GPUs, and the exact energies between two times");
    command->add_option("STATE", line->path, "File of `joulemark-sim create`")->required();
    command->add_option("--from-ns", line->from_ns, "Of the simulated clock (default: its start)");
    command->add_option("--to-ns", line->to_ns, "(default: now)");
    command->add_flag("--json", line->json, "One JSON document");
    command->footer("Example: joulemark-sim show gpus.sim --json");
    command->callback([line] { show(*line); });
}

}  // namespace joulemark::sim
