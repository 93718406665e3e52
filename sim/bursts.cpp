// SPDX-License-Identifier: Apache-2.0
#include <random>

#include <nlohmann/json.hpp>

#include "core/csv.h"
#include "core/units.h"
#include "sim/commands.h"
#include "sim/marks.h"
#include "sim/truth.h"
#include "sim/work.h"

namespace joulemark::sim {
namespace {

struct BurstsLine {
    std::vector<std::string> bursts;
    unsigned repeats = 10, gpu = 0;
    double gap_s = 0, vary = 0;
};

struct Burst {
    std::string name;
    double power_w, seconds;
};

/// NAME=WATTS:SECONDS.
Burst parse(const std::string& spec) {
    const std::size_t equals = spec.find('=');
    const std::size_t colon = spec.find(':', equals);
    if (equals != std::string::npos && equals > 0 && colon != std::string::npos) {
        const auto power = csv::number(spec.substr(equals + 1, colon - equals - 1));
        const auto length = csv::number(spec.substr(colon + 1));
        if (power && length && *power >= 0 && *power < 1e5 && *length > 0 && *length < 1e6) {
            return {spec.substr(0, equals), *power, *length};
        }
    }
    throw bad_input("--burst '{}' must read NAME=WATTS:SECONDS, such as step=400:0.3", spec);
}

void run(const BurstsLine& line) {
    State& state = state_of_environment();
    const std::vector<unsigned> visible = visible_gpus(state);
    if (line.gpu >= visible.size()) {
        throw bad_input("--gpu {}: only {} simulated GPUs are visible", line.gpu, visible.size());
    }
    if (!(line.vary >= 0 && line.vary < 1) || !(line.gap_s >= 0 && line.gap_s < 1e6)) {
        throw bad_input("--vary has to be from 0 to below 1, and --gap-s from 0");
    }
    std::vector<Burst> bursts;
    for (const std::string& spec : line.bursts) {
        bursts.push_back(parse(spec));
    }
    std::mt19937_64 random(mix(state.seed(), 0));
    std::uniform_real_distribution<double> factor(1 - line.vary, 1 + line.vary);
    Job job(state, {visible[line.gpu]});
    Marks marks(!state.real_clock());
    const auto work = [&](double power_w, double duration_s) {
        job.run([&](const Limits& limits) {
            return Job::Pace{duration_s, [&, limits](unsigned gpu) {
                                 return Load{.power_w = std::min(power_w, state.limit_w(gpu)),
                                             .busy = power_w > state.profile().idle_power_w ? 1.0 : 0.0,
                                             .sm_clock_mhz = limits.sm_clock_mhz};
                             }};
        });
    };
    for (unsigned repeat = 0; repeat < line.repeats; ++repeat) {
        for (const Burst& burst : bursts) {
            if (line.gap_s > 0) {
                work(state.profile().idle_power_w, line.gap_s * factor(random));
            }
            marks.send({{"event", "begin"},
                        {"name", burst.name},
                        {"index", repeat},
                        {"rank", 0},
                        {"t", job.now_ns()}});
            work(burst.power_w, burst.seconds * factor(random));
            marks.send({{"event", "end"},
                        {"name", burst.name},
                        {"index", repeat},
                        {"rank", 0},
                        {"t", job.now_ns()}});
        }
    }
    work(state.profile().idle_power_w, 1);
}

}  // namespace

void add_bursts(CLI::App& app) {
    auto line = std::make_shared<BurstsLine>();
    CLI::App* command =
        app.add_subcommand("bursts", "Bursts of load on one simulated GPU, each marked as a region");
    command->add_option("--burst", line->bursts, "NAME=WATTS:SECONDS; one after the other where repeated")
        ->required();
    command->add_option("--repeats", line->repeats, "Of all of them")->capture_default_str();
    command->add_option("--gap-s", line->gap_s, "Idle time before each")->capture_default_str();
    command->add_option("--vary", line->vary, "Every duration by up to this share, at random")
        ->capture_default_str();
    command->add_option("--gpu", line->gpu, "Index among the visible GPUs")->capture_default_str();
    command->footer(
        "Example: JOULEMARK_SIM=gpus.sim joulemark-sim bursts --burst on=400:0.3 --gap-s 0.7 --repeats 50");
    command->callback([line] { run(*line); });
}

}  // namespace joulemark::sim
