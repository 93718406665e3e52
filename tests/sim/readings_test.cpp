// SPDX-License-Identifier: Apache-2.0
#include "sim/readings.h"

#include <set>

#include <gtest/gtest.h>

#include "core/units.h"
#include "sim/virtual_clock.h"
#include "simulated.h"

namespace joulemark::sim {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// Idle for 10 s, 500 W for 10 s, idle again; the clock stands 10 s later.
struct Burst {
    explicit Burst(std::vector<std::string> faults = {}, const std::string& sensors = "{}")
        : simulated("H200", 2, std::move(faults), ClockMode::simulated, sensors) {
        const auto driver = Participant::join(state, true);
        driver->sleep_until(begin);
        state.append(
            0, {.power_w = 500, .busy = 0.9, .sm_clock_mhz = 1500, .memory_bytes = 1 << 30, .capped = true},
            end, driver->owner());
        driver->sleep_until(end + 10 * ns_per_s);
    }
    Simulated simulated;
    State& state = simulated.state();
    Readings readings{state};
    std::int64_t begin = state.start_ns() + 10 * ns_per_s;
    std::int64_t end = begin + 10 * ns_per_s;
};

TEST(Readings, InstantPowerIsFreshWithinRefreshAndLag) {
    const Burst burst;
    EXPECT_NEAR(burst.readings.power_instant_w(0, burst.begin), 75, 1e-6);
    EXPECT_NEAR(burst.readings.power_instant_w(0, burst.begin + 200 * ms), 500, 1e-6);
    EXPECT_NEAR(burst.readings.power_instant_w(0, burst.end + 200 * ms), 75, 1e-6);
}

TEST(Readings, AveragePowerRampsOverASecond) {
    const Burst burst;
    const double half = burst.readings.power_average_w(0, burst.begin + 600 * ms);
    EXPECT_GT(half, 200);
    EXPECT_LT(half, 400);
    EXPECT_NEAR(burst.readings.power_average_w(0, burst.begin + 1200 * ms), 500, 1e-6);
}

TEST(Readings, TheCounterIsTheTruthAtItsRefreshLessItsLag) {
    const Burst burst;
    for (std::int64_t t = burst.begin - 300 * ms; t < burst.begin + 2000 * ms; t += 7 * ms) {
        const std::int64_t refreshed = burst.readings.refreshed_ns(0, t);
        ASSERT_LE(refreshed, t);
        ASSERT_GT(refreshed, t - 100 * ms);
        ASSERT_DOUBLE_EQ(burst.readings.energy_j(0, t), burst.state.energy_j(0, refreshed - 50 * ms));
    }
}

TEST(Readings, SensorsSeeTimeAsTheyAreTold) {
    const Burst burst({}, R"({"refresh_s": 0.02, "counter_lag_s": 0.03, "counter_window_s": 0.2,
                              "instant_lag_s": 0, "instant_window_s": 0.05, "average_window_s": 2})");
    const auto mean_j = [&](std::int64_t from, std::int64_t to) {  // by sums, 0.1 ms at a time
        double sum = 0;
        int n = 0;
        for (std::int64_t t = from + ms / 20; t < to; t += ms / 10, ++n) {
            sum += burst.state.energy_j(0, t);
        }
        return sum / n;
    };
    for (const std::int64_t edge : {burst.begin, burst.end}) {
        for (std::int64_t t = edge - 100 * ms; t < edge + 400 * ms; t += 7 * ms) {
            const std::int64_t refreshed = burst.readings.refreshed_ns(0, t);
            ASSERT_GT(refreshed, t - 20 * ms);
            ASSERT_NEAR(burst.readings.energy_j(0, t), mean_j(refreshed - 230 * ms, refreshed - 30 * ms),
                        1e-3);
            ASSERT_NEAR(
                burst.readings.power_instant_w(0, t),
                (burst.state.energy_j(0, refreshed) - burst.state.energy_j(0, refreshed - 50 * ms)) / 0.05,
                1e-6);
        }
    }
    EXPECT_NEAR(burst.readings.power_average_w(0, burst.begin + 1060 * ms), (75 + 500) / 2.0, 5);
}

TEST(Readings, SensorTimingThatCannotBeIsRefused) {
    const Profile& profile = *find_profile("H200");
    for (const char* text :
         {"[]", R"({"window_s": 1})", R"({"instant_window_s": 0})", R"({"refresh_s": "1"})",
          R"({"counter_lag_s": -0.1})", R"({"average_lag_s": 1e9})"}) {
        EXPECT_THROW(parse_sensor_timing(text, "test", profile), Error) << text;
    }
    const SensorTiming timing = parse_sensor_timing(R"({"average_lag_s": 0.2})", "test", profile);
    EXPECT_EQ(timing.average.lag_ns, 200 * ms);
    EXPECT_EQ(timing.average.window_ns, ns_per_s);
    EXPECT_EQ(timing.counter.lag_ns, profile.lag_ns);
}

TEST(Readings, RefreshTakesPlaceOncePerPeriod) {
    const Burst burst;
    std::set<double> values;
    for (std::int64_t t = burst.begin + 200 * ms; t < burst.begin + 1200 * ms; t += ms) {
        values.insert(burst.readings.energy_j(0, t));
    }
    EXPECT_NEAR(static_cast<double>(values.size()), 10, 1);
}

TEST(Readings, UtilisationMemoryAndClockFollowTheLoad) {
    const Burst burst;
    EXPECT_NEAR(burst.readings.busy_pct(0, burst.begin + 5 * ns_per_s), 90, 1e-6);
    EXPECT_EQ(burst.readings.busy_pct(1, burst.begin + 5 * ns_per_s), 0);
    EXPECT_EQ(burst.readings.sm_clock_mhz(0, burst.begin), 1500);
    EXPECT_EQ(burst.readings.sm_clock_mhz(0, burst.end), 345);
    EXPECT_EQ(
        burst.readings.memory_used_bytes(0, burst.begin) - burst.readings.memory_used_bytes(0, burst.end),
        std::uint64_t{1} << 30);
}

TEST(Readings, AFrozenCounterStopsAndAResetOneStartsAgain) {
    const Burst frozen({"counter-freeze@15#0"});
    EXPECT_EQ(frozen.readings.energy_j(0, frozen.begin + 6 * ns_per_s),
              frozen.readings.energy_j(0, frozen.end));
    EXPECT_LT(frozen.readings.energy_j(1, frozen.begin + 6 * ns_per_s),
              frozen.readings.energy_j(1, frozen.end));
    const Burst reset({"counter-reset@15"});
    EXPECT_NEAR(reset.readings.energy_j(0, reset.begin + 6 * ns_per_s), 500, 50);
}

TEST(Readings, AWrappingCounterStaysBelowItsRange) {
    const Burst burst({"counter-wrap=1000"});
    bool wrapped = false;
    double last = 0;
    for (std::int64_t t = burst.begin; t < burst.end; t += 100 * ms) {
        const double now = burst.readings.energy_j(0, t);
        ASSERT_LT(now, 1000);
        wrapped |= now < last;
        last = now;
    }
    EXPECT_TRUE(wrapped);
}

TEST(Readings, FrozenPowerKeepsItsValue) {
    const Burst burst({"power-frozen@15#0"});
    EXPECT_NEAR(burst.readings.power_average_w(0, burst.end + 5 * ns_per_s), 500, 1e-6);
    EXPECT_NEAR(burst.readings.power_instant_w(0, burst.end + 5 * ns_per_s), 500, 1e-6);
}

}  // namespace
}  // namespace joulemark::sim
