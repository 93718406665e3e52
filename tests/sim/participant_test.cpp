// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "core/units.h"
#include "sim/virtual_clock.h"
#include "simulated.h"

namespace joulemark::sim {
namespace {

using namespace std::chrono_literals;

TEST(Participant, AloneTheDriverJumpsToItsDeadline) {
    const Simulated simulated;
    State& state = simulated.state();
    const auto driver = Participant::join(state, true);
    const std::int64_t week = state.now_ns() + 7 * 86400 * ns_per_s;
    EXPECT_TRUE(driver->sleep_until(week));
    EXPECT_EQ(state.now_ns(), week);
    EXPECT_TRUE(driver->sleep_until(week - 5));
    EXPECT_EQ(state.now_ns(), week);
}

TEST(Participant, WithoutADriverTheClockStands) {
    const Simulated simulated;
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    const auto sleeper = Participant::join(state, false);
    const std::jthread waker([&] {
        std::this_thread::sleep_for(120ms);  // longer than a sleeper's patience
        sleeper->wake();
    });
    EXPECT_FALSE(sleeper->sleep_until(start + 1));
    EXPECT_EQ(state.now_ns(), start);
}

TEST(Participant, AWakeIsKeptForTheNextSleepAndOnlyForIt) {
    const Simulated simulated;
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    const auto driver = Participant::join(state, true);
    driver->wake();
    EXPECT_FALSE(driver->sleep_until(start + 10));
    EXPECT_EQ(state.now_ns(), start);
    EXPECT_TRUE(driver->sleep_until(start + 10));
}

TEST(Participant, WhoIsAwakeHoldsTheClock) {
    const Simulated simulated;
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    auto holder = Participant::join(state, false);
    std::atomic<bool> arrived = false;
    const std::jthread work([&] {
        const auto driver = Participant::join(state, true);
        driver->sleep_until(start + 10);
        arrived = true;
    });
    std::this_thread::sleep_for(120ms);
    EXPECT_FALSE(arrived);
    EXPECT_EQ(state.now_ns(), start);
    holder.reset();
    while (!arrived) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(state.now_ns(), start + 10);
}

TEST(Participant, EveryThreadSeesEachOfItsDeadlinesExactly) {
    const Simulated simulated;
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    const std::int64_t end = start + 1'000'000;
    const auto gate = Participant::join(state, true);  // awake until all are there, then their driver
    std::atomic<int> missed = 0;
    std::vector<std::jthread> threads;
    std::atomic<int> seated = 0;
    for (const std::int64_t period : {700, 1000, 1100, 2500, 9000}) {
        threads.emplace_back([&, period] {
            const auto seat = Participant::join(state, false);
            ++seated;
            for (std::int64_t at = start + period; at <= end; at += period) {
                if (!seat->sleep_until(at) || state.now_ns() != at) {
                    ++missed;
                }
            }
        });
    }
    while (seated < 5) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(gate->sleep_until(end));
    threads.clear();
    EXPECT_EQ(missed, 0);
}

TEST(Participant, ANewLimitWakesTheWorkAtThatInstant) {
    const Simulated simulated;
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    const auto controller = Participant::join(state, false);
    std::atomic<std::int64_t> woken_at = 0;
    std::jthread work([&] {
        const auto driver = Participant::join(state, true);
        if (!driver->sleep_until(start + 100 * ns_per_s)) {
            woken_at = state.now_ns();
        }
    });
    ASSERT_TRUE(controller->sleep_until(start + 7 * ns_per_s));
    state.set_limit_mw(0, 300'000);
    work.join();
    EXPECT_EQ(woken_at, start + 7 * ns_per_s);
    EXPECT_DOUBLE_EQ(state.limit_w(0), 300);
}

TEST(Participant, SeatsRunOutAndComeBack) {
    const Simulated simulated;
    std::vector<std::unique_ptr<Participant>> seats;
    while (auto seat = Participant::join(simulated.state(), false)) {
        seats.push_back(std::move(seat));
    }
    EXPECT_EQ(seats.size(), max_participants);
    seats.pop_back();
    EXPECT_NE(Participant::join(simulated.state(), false), nullptr);
}

TEST(Participant, AWeekAtOneHertzBesideSimulatedWork) {
    const Simulated simulated("H200", 8);
    State& state = simulated.state();
    const std::int64_t start = state.now_ns();
    const std::int64_t end = start + 7 * 86400 * ns_per_s;
    const auto sampler = Participant::join(state, false);
    std::jthread work([&] {
        const auto driver = Participant::join(state, true);
        for (std::int64_t at = start + 3600 * ns_per_s; at <= end; at += 3600 * ns_per_s) {
            driver->sleep_until(at);
        }
    });
    std::int64_t samples = 0;
    for (std::int64_t at = start + ns_per_s; at <= end; at += ns_per_s) {
        samples += sampler->sleep_until(at) ? 1 : 0;
    }
    EXPECT_EQ(samples, 7 * 86400);
    EXPECT_EQ(state.now_ns(), end);
}

TEST(Participant, TheDeadDoNotHoldTheClock) {
    const Simulated simulated;
    State& state = simulated.state();
    const auto sleeper = Participant::join(state, true);
    const std::int64_t start = state.now_ns();
    Command work(simulated.path, {"work", "--seconds", "1000", "--power-w", "600"});
    // Awake, we hold the clock: the work has come to its first sleep, and stays there.
    while (state.load_at(0, start) == nullptr) {
        std::this_thread::sleep_for(1ms);
    }
    work.kill_now();
    EXPECT_TRUE(sleeper->sleep_until(start + 5000 * ns_per_s));
    EXPECT_EQ(state.now_ns(), start + 5000 * ns_per_s);
}

TEST(Participant, ADeadDriverDrivesNoMore) {
    const Simulated simulated;
    State& state = simulated.state();
    auto sleeper = Participant::join(state, false);
    const std::int64_t start = state.now_ns();
    Command work(simulated.path, {"work", "--seconds", "1000", "--power-w", "600"});
    while (state.load_at(0, start) == nullptr) {
        std::this_thread::sleep_for(1ms);
    }
    work.kill_now();
    const std::jthread waker([&] {
        std::this_thread::sleep_for(200ms);
        sleeper->wake();
    });
    EXPECT_FALSE(sleeper->sleep_until(start + 1));
    EXPECT_EQ(state.now_ns(), start);
    EXPECT_EQ(state.load_at(0, start), nullptr) << "the load outlived its process";
}

/// Each segment's stored sums must be what the segment before it leads to.
void expect_whole(const State& state, unsigned gpu) {
    const auto log = state.segments(gpu);
    for (std::size_t i = 1; i < log.size(); ++i) {
        const Segment& last = log[i - 1];
        ASSERT_GE(log[i].start_ns, last.start_ns);
        ASSERT_GE(last.end_ns, last.start_ns);
        const std::int64_t loaded_until = std::min(last.end_ns.load(), log[i].start_ns);
        const double energy = last.energy_j + last.power_w * seconds(loaded_until - last.start_ns) +
                              state.profile().idle_power_w * seconds(log[i].start_ns - loaded_until);
        ASSERT_NEAR(log[i].energy_j, energy, 1e-6) << "segment " << i;
    }
}

TEST(Participant, KillingProcessesAtAnyMomentNeitherBlocksNorCorrupts) {
    const Simulated simulated("V100", 4);
    State& state = simulated.state();
    std::mt19937_64 random(11);
    // A bystander sleeps on the clock all the while, as the meter does.
    std::atomic<bool> stop = false;
    std::atomic<std::int64_t> ticks = 0;
    const auto seat = Participant::join(state, false);
    std::jthread meter([&] {
        for (std::int64_t at = state.now_ns(); !stop; at = state.now_ns() + 50'000'000) {
            ticks += seat->sleep_until(at) ? 1 : 0;
        }
    });
    const std::vector<std::string> busy = {
        "train", "--gpus", "4", "--epochs", "1000000", "--truth", R"({"epoch_time_s": 1})"};
    // Killed at any moment from its start on, which takes long under a sanitizer.
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Command(simulated.path, {"work", "--seconds", "1", "--power-w", "100"}).wait(), 0);
    const auto start = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    const auto latest = std::max<std::uint64_t>(15000, 2 * static_cast<std::uint64_t>(start.count()));
    for (int i = 0; i < 60; ++i) {
        Command first(simulated.path, busy);
        Command second(simulated.path, busy);
        std::this_thread::sleep_for(std::chrono::microseconds(1000 + random() % latest));
        first.kill_now();
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    }
    EXPECT_GT(ticks, 0);
    const std::int64_t before = state.now_ns();
    Command last(simulated.path, {"work", "--seconds", "10", "--power-w", "100"});
    EXPECT_EQ(last.wait(), 0);
    EXPECT_GE(state.now_ns(), before + 10 * ns_per_s);
    stop = true;
    seat->wake();
    meter.join();
    for (unsigned gpu = 0; gpu < 4; ++gpu) {
        EXPECT_GT(state.segments(gpu).size(), 20u);
        expect_whole(state, gpu);
    }
}

TEST(Participant, UnderTheRealClockItSleepsInRealTime) {
    const Simulated simulated("H200", 1, {}, ClockMode::real);
    State& state = simulated.state();
    const auto seat = Participant::join(state, false);
    const std::int64_t deadline = state.now_ns() + 20'000'000;
    EXPECT_TRUE(seat->sleep_until(deadline));
    EXPECT_GE(state.now_ns(), deadline);
    seat->wake();
    EXPECT_FALSE(seat->sleep_until(state.now_ns() + 3600 * ns_per_s));
}

}  // namespace
}  // namespace joulemark::sim
