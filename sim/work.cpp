// SPDX-License-Identifier: Apache-2.0
#include "sim/work.h"

#include <algorithm>
#include <limits>

#include "core/csv.h"
#include "core/units.h"
#include "sim/commands.h"

namespace joulemark::sim {
namespace {

struct WorkLine {
    double seconds = 0, busy_pct = 100, power_w = 0, memory_gib = 1;
    std::vector<unsigned> gpus = {0};
};

void work(const WorkLine& line) {
    State& state = state_of_environment();
    const std::vector<unsigned> visible = visible_gpus(state);
    if (!(line.seconds > 0 && line.seconds < 1e9)) {
        throw bad_input("--seconds has to be above 0, not {}", line.seconds);
    }
    if (!(line.busy_pct >= 0 && line.busy_pct <= 100)) {
        throw bad_input("--busy has to be from 0 to 100 per cent, not {}", line.busy_pct);
    }
    if (!(line.power_w >= 0 && line.power_w < 1e5)) {
        throw bad_input("--power-w has to be a power from 0, not {}", line.power_w);
    }
    if (!(line.memory_gib >= 0 && line.memory_gib < 1e6)) {
        throw bad_input("--memory-gib has to be from 0, not {}", line.memory_gib);
    }
    std::vector<unsigned> gpus;
    for (const unsigned index : line.gpus) {
        if (index >= visible.size()) {
            throw bad_input("--gpu {}: only {} simulated GPUs are visible", index, visible.size());
        }
        gpus.push_back(visible[index]);
    }
    Job job(state, gpus);
    job.run([&](const Limits& limits) {
        return Job::Pace{line.seconds, [&state, &line, limits](unsigned gpu) {
                             return Load{.power_w = std::min(line.power_w, state.limit_w(gpu)),
                                         .busy = line.busy_pct / 100,
                                         .sm_clock_mhz = limits.sm_clock_mhz,
                                         .memory_bytes = static_cast<std::uint64_t>(line.memory_gib * 0x1p30),
                                         .capped = line.power_w > state.limit_w(gpu)};
                         }};
    });
}

}  // namespace

Job::Job(State& state, std::vector<unsigned> gpus)
    : gpus_(std::move(gpus)), seat_(Participant::join(state, true)) {
    if (!seat_) {
        throw environment_error("all {} seats at the simulated clock are taken", max_participants);
    }
}

Limits Job::limits() const {
    Limits tightest{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    for (const unsigned gpu : gpus_) {
        tightest.power_cap_w = std::min(tightest.power_cap_w, seat_->state().limit_w(gpu));
        tightest.sm_clock_mhz = std::min(tightest.sm_clock_mhz, seat_->state().clock_limit_mhz(gpu));
    }
    return tightest;
}

void Job::run(const std::function<Pace(const Limits&)>& pace) {
    State& state = seat_->state();
    // Under the real clock nobody notices at once when this process is killed: its load must not outlive it
    // long.
    const double longest_s = state.real_clock() ? 1 : std::numeric_limits<double>::infinity();
    for (double left = 1; left > 0;) {
        const Pace now = pace(limits());
        const double slice_s = std::min(left * now.duration_s, longest_s);
        const std::int64_t start = now_ns();
        const std::int64_t end = start + nanoseconds(slice_s);
        {
            const State::Lock lock(state);
            for (const unsigned gpu : gpus_) {
                state.append_locked(gpu, now.load(gpu), end, seat_->owner());
            }
        }
        const bool undisturbed = seat_->sleep_until(end);
        if (undisturbed && slice_s < longest_s) {
            return;
        }
        left -= seconds(now_ns() - start) / now.duration_s;
    }
}

void add_work(CLI::App& app) {
    auto line = std::make_shared<WorkLine>();
    CLI::App* command = app.add_subcommand("work", "Keeps simulated GPUs busy for a while");
    command->add_option("--seconds", line->seconds, "Duration")->required();
    command->add_option("--power-w", line->power_w, "Power of each GPU; the power limit cuts it")->required();
    command->add_option("--busy", line->busy_pct, "Per cent of the time in which a kernel runs")
        ->capture_default_str();
    command->add_option("--gpu", line->gpus, "Index among the visible GPUs; may be repeated")
        ->capture_default_str();
    command->add_option("--memory-gib", line->memory_gib, "Device memory in use")->capture_default_str();
    command->footer("Example: JOULEMARK_SIM=gpus.sim joulemark-sim work --seconds 60 --power-w 200");
    command->callback([line] { work(*line); });
}

}  // namespace joulemark::sim
