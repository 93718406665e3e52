// SPDX-License-Identifier: Apache-2.0
#include "vendor/simulated_clock.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "core/units.h"
#include "sim/simulated.h"
#include "vendor/nvml.h"

namespace joulemark::nvml {
namespace {

using namespace std::chrono_literals;
using sim::Command;

class SimulatedClockTest : public testing::Test {
  protected:
    SimulatedClockTest() {
        setenv("JOULEMARK_NVML", JOULEMARK_BINARY_DIR "/sim/libnvidia-ml.so.1", 1);
        setenv("JOULEMARK_SIM", simulated.path.c_str(), 1);
        auto opened = Library::open();
        library = *opened;
        clock = library->clock();
        start = clock->now_ns();
    }

    sim::Simulated simulated;
    std::shared_ptr<Library> library;
    std::shared_ptr<Clock> clock;
    std::int64_t start = 0;
};

TEST_F(SimulatedClockTest, DrivesIdleTime) {
    const std::int64_t wall = clock->realtime_ns();
    EXPECT_TRUE(clock->simulated());
    EXPECT_TRUE(clock->drive_until(start + 30 * ns_per_s, {}));
    EXPECT_EQ(clock->now_ns(), start + 30 * ns_per_s);
    EXPECT_EQ(clock->realtime_ns(), wall + 30 * ns_per_s);
}

TEST_F(SimulatedClockTest, AThreadThatSleptBeforeCanDrive) {
    std::jthread([&](std::stop_token stop) {
        std::jthread other([&] { clock->drive_until(start + 10, {}); });
        EXPECT_TRUE(clock->sleep_until(start + 10, stop));
        other.join();
        EXPECT_TRUE(clock->drive_until(start + 20, stop));
        EXPECT_EQ(clock->now_ns(), start + 20);
        // It is back in its own seat, and awake: nobody else can move the clock.
        std::stop_source give_up;
        std::jthread blocked([&] { EXPECT_FALSE(clock->drive_until(start + 30, give_up.get_token())); });
        std::this_thread::sleep_for(80ms);
        EXPECT_EQ(clock->now_ns(), start + 20);
        give_up.request_stop();
    }).join();
}

TEST_F(SimulatedClockTest, StopEndsASleep) {
    std::jthread sleeper([&](std::stop_token stop) { EXPECT_FALSE(clock->sleep_until(start + 1, stop)); });
    std::this_thread::sleep_for(20ms);
    sleeper.request_stop();
    sleeper.join();
    EXPECT_EQ(clock->now_ns(), start);
}

TEST_F(SimulatedClockTest, AStopOfAnEarlierSleepDoesNotEndTheNext) {
    std::jthread([&] {
        std::stop_source stopped;
        stopped.request_stop();
        EXPECT_FALSE(clock->sleep_until(start + 1, stopped.get_token()));
        const std::jthread driver([&] { clock->drive_until(start + 50, {}); });
        EXPECT_TRUE(clock->sleep_until(start + 50, {}));
        EXPECT_EQ(clock->now_ns(), start + 50);
    }).join();
}

TEST_F(SimulatedClockTest, AHoldStopsTheClock) {
    auto hold = clock->hold();
    std::atomic<bool> reached = false;
    const std::jthread driver([&] { reached = clock->drive_until(start + 5, {}); });
    std::this_thread::sleep_for(80ms);
    EXPECT_EQ(clock->now_ns(), start);
    EXPECT_FALSE(reached);
    hold.reset();
}

TEST_F(SimulatedClockTest, SamplersOfSeveralThreadsFollowTheWorkOfAProcess) {
    auto hold = clock->hold();  // until all have their seats
    std::atomic<int> seated = 0, off = 0;
    std::atomic<std::int64_t> samples = 0;
    std::vector<std::jthread> samplers;
    for (const std::int64_t period : {ns_per_s / 10, ns_per_s, 7 * ns_per_s}) {
        samplers.emplace_back([&, period](std::stop_token stop) {
            clock->sleep_until(start, stop);
            ++seated;
            for (std::int64_t at = start + period; clock->sleep_until(at, stop); at += period) {
                off += clock->now_ns() != at ? 1 : 0;
                ++samples;
            }
        });
    }
    while (seated < 3) {
        std::this_thread::sleep_for(1ms);
    }
    Command work(simulated.path, {"work", "--seconds", "700", "--power-w", "300"});
    hold.reset();
    EXPECT_EQ(work.wait(), 0);
    for (auto& sampler : samplers) {
        sampler.request_stop();
    }
    samplers.clear();
    EXPECT_EQ(off, 0);
    EXPECT_GE(samples, 7000 + 700 + 100 - 3);
    EXPECT_EQ(clock->now_ns(), start + 700 * ns_per_s);
}

TEST_F(SimulatedClockTest, AKilledWorkerDoesNotStopTheMeter) {
    auto hold = clock->hold();
    Command work(simulated.path, {"work", "--seconds", "1000", "--power-w", "300"});
    while (simulated.state().load_at(0, start) == nullptr) {
        std::this_thread::sleep_for(1ms);
    }
    std::jthread sampler([&](std::stop_token stop) {
        for (std::int64_t at = start; clock->sleep_until(at, stop); at += ns_per_s) {
        }
    });
    work.kill_now();
    hold.reset();
    EXPECT_TRUE(clock->drive_until(start + 30 * ns_per_s, {}));
    EXPECT_GE(clock->now_ns(), start + 30 * ns_per_s);
    EXPECT_EQ(simulated.state().load_at(0, clock->now_ns()), nullptr);
}

TEST_F(SimulatedClockTest, AThreadMayOutliveTheLibrary) {
    std::atomic<bool> slept = false;
    std::atomic<bool> closed = false;
    std::jthread thread([&] {
        std::stop_source stopped;
        stopped.request_stop();
        clock->sleep_until(start + 1, stopped.get_token());
        slept = true;
        while (!closed) {
            std::this_thread::sleep_for(1ms);
        }
    });
    while (!slept) {
        std::this_thread::sleep_for(1ms);
    }
    clock.reset();
    library.reset();
    closed = true;
    thread.join();
    // Its seat is free again: the clock moves.
    auto reopened = Library::open();
    EXPECT_TRUE((*reopened)->clock()->drive_until(start + 1, {}));
}

}  // namespace
}  // namespace joulemark::nvml
