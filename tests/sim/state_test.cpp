// SPDX-License-Identifier: Apache-2.0
#include "sim/state.h"

#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "core/units.h"
#include "sim/virtual_clock.h"
#include "simulated.h"

namespace joulemark::sim {
namespace {

constexpr std::int64_t never = std::int64_t{1} << 60;

TEST(State, AnIdleGpuUsesIdlePower) {
    const Simulated simulated("V100", 3);
    const State& state = simulated.state();
    const std::int64_t t = state.start_ns();
    EXPECT_NEAR(state.energy_j(2, t + 10 * ns_per_s) - state.energy_j(2, t), 250, 1e-9);
    EXPECT_GT(state.energy_j(2, t), 0);
    EXPECT_EQ(state.load_at(2, t), nullptr);
}

TEST(State, EnergyIsTheIntegralOfTheLoads) {
    const Simulated simulated("V100", 1);
    State& state = simulated.state();
    const auto seat = Participant::join(state, true);
    std::mt19937_64 random(5);
    const std::int64_t begin = state.now_ns();
    std::vector<double> joules = {state.energy_j(0, begin)};
    std::vector<std::int64_t> times = {begin};
    for (int i = 0; i < 3000; ++i) {
        const double power = static_cast<double>(random() % 250);
        const auto planned = static_cast<std::int64_t>(random() % 3'000'000'000);
        const auto until_next = static_cast<std::int64_t>(random() % 3'000'000'000);
        state.append(0, {.power_w = power, .busy = 1, .sm_clock_mhz = 0, .memory_bytes = 0, .capped = false},
                     state.now_ns() + planned, seat->owner());
        seat->sleep_until(state.now_ns() + until_next);
        joules.push_back(joules.back() + power * seconds(std::min(planned, until_next)) +
                         25 * seconds(std::max<std::int64_t>(0, until_next - planned)));
        times.push_back(state.now_ns());
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
        ASSERT_NEAR(state.energy_j(0, times[i]), joules[i], 1e-6) << i;
    }
}

TEST(State, TemperatureSettlesAndCools) {
    const Simulated simulated("V100", 1);
    State& state = simulated.state();
    const auto seat = Participant::join(state, true);
    const double cold = state.temperature_c(0, state.now_ns());
    const std::int64_t start = state.now_ns();
    state.append(0, {.power_w = 250, .busy = 1, .sm_clock_mhz = 0, .memory_bytes = 0, .capped = false},
                 start + 3600 * ns_per_s, seat->owner());
    seat->sleep_until(start + 7200 * ns_per_s);
    EXPECT_NEAR(state.temperature_c(0, start + 3600 * ns_per_s), 28 + 0.16 * 250, 1e-6);
    EXPECT_GT(state.temperature_c(0, start + 20 * ns_per_s), cold + 5);
    EXPECT_NEAR(state.temperature_c(0, start + 7200 * ns_per_s), cold, 1e-6);
}

TEST(State, LoadsEndWithTheirOwner) {
    const Simulated simulated;
    State& state = simulated.state();
    auto driver = Participant::join(state, true);
    state.append(0, {.power_w = 500, .busy = 1, .sm_clock_mhz = 1, .memory_bytes = 1, .capped = false}, never,
                 driver->owner());
    state.append(1, {.power_w = 500, .busy = 1, .sm_clock_mhz = 1, .memory_bytes = 1, .capped = false}, never,
                 12345);
    driver->sleep_until(state.now_ns() + ns_per_s);
    ASSERT_NE(state.load_at(0, state.now_ns()), nullptr);
    driver.reset();
    EXPECT_EQ(state.load_at(0, state.now_ns()), nullptr);
    EXPECT_NE(state.load_at(1, state.now_ns()), nullptr);
}

TEST(State, IsTheSameObjectWithinAProcessAndUuidsDiffer) {
    const Simulated one, two;
    EXPECT_EQ(&one.state(), &one.state());
    EXPECT_NE(&one.state(), &two.state());
    EXPECT_NE(one.state().uuid(0), one.state().uuid(1));
    EXPECT_EQ(one.state().uuid(0).size(), 40u);
    EXPECT_EQ(one.state().uuid(0), two.state().uuid(0));
    EXPECT_NE(one.state().uuid(0), Simulated("V100").state().uuid(0)) << "they are no one and the same device";
}

TEST(State, WhatIsNoStateIsRefused) {
    EXPECT_FALSE(State::open("/nonexistent/gpus"));
    EXPECT_FALSE(State::open("/tmp"));
    const Simulated simulated;
    const auto path = simulated.path.string() + ".text";
    std::ofstream(path) << std::string(1 << 20, 'x');
    const auto opened = State::open(path);
    EXPECT_FALSE(opened);
    EXPECT_NE(opened.failure().reason.find(path), std::string::npos);
    std::filesystem::remove(path);
    EXPECT_THROW(State::create("/nonexistent/gpus", {.profile = find_profile("V100"), .faults = {}}), Error);
}

}  // namespace
}  // namespace joulemark::sim
