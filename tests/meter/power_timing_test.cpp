// SPDX-License-Identifier: Apache-2.0
#include "meter/power_timing.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "burst_sensor.h"

namespace joulemark::meter {
namespace {

using Timing = BurstSensor::Timing;

/// A square wave of uneven period.
BurstSensor square_wave(std::uint64_t seed, double idle_w = 80, double busy_w = 500, double scatter = 0) {
    BurstSensor sensor(idle_w, seed);
    sensor.idle(3);
    for (int i = 0; i < 60; ++i) {
        sensor.burst("square", 0.45 * sensor.uniform(0.6, 1.4), busy_w * (1 + sensor.normal(scatter)));
        sensor.idle(0.55 * sensor.uniform(0.6, 1.4));
    }
    sensor.idle(3);
    return sensor;
}

TEST(PowerTiming, TellsAnAverageOverASecondFromAFreshReading) {
    for (const Timing timing : {Timing{.refresh_s = 0.1, .lag_s = 0.05, .window_s = 1.0},
                                Timing{.refresh_s = 0.1, .lag_s = 0.05, .window_s = 0.025},
                                Timing{.refresh_s = 0.02, .lag_s = 0.0, .window_s = 0.02},
                                Timing{.refresh_s = 0.1, .lag_s = 0.3, .window_s = 0.1}}) {
        BurstSensor sensor = square_wave(7);
        const auto found = power_timing(sensor.regions(), sensor.power(timing, timing.refresh_s / 14));
        ASSERT_TRUE(found) << found.failure().reason;
        EXPECT_NEAR(found->refresh_s, timing.refresh_s, 1e-5);
        EXPECT_NEAR(found->lag_s, timing.lag_s, 1e-3);
        EXPECT_NEAR(found->window_s, timing.window_s, 1e-3);
        EXPECT_NEAR(found->low_w, 80, 1);
        EXPECT_NEAR(found->high_w, 500, 1);
        EXPECT_LT(found->residual_w, 1);
    }
}

TEST(PowerTiming, HoldsForAnySensorOver100Seeds) {
    int lag_covered = 0, window_covered = 0;
    constexpr int seeds = 100;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        BurstSensor sensor = square_wave(seed, 80, 500, 0.01);
        Timing timing{.refresh_s = 0.02 * std::pow(5, sensor.uniform(0, 1)), .lag_s = sensor.uniform(0, 0.2)};
        timing.window_s = seed % 2 == 0 ? 1.0 : timing.refresh_s * sensor.uniform(0.2, 1);
        const auto found = power_timing(sensor.regions(), sensor.power(timing, 0.0043, 1));
        ASSERT_TRUE(found) << seed << ": " << found.failure().reason;
        ASSERT_NEAR(found->refresh_s / timing.refresh_s, 1, 0.01) << seed;
        ASSERT_NEAR(found->lag_s, timing.lag_s, 0.02) << seed;
        ASSERT_NEAR(found->window_s, timing.window_s, 0.03) << seed;
        lag_covered += std::abs(found->lag_s - timing.lag_s) <= found->lag_bound_s ? 1 : 0;
        window_covered += std::abs(found->window_s - timing.window_s) <= found->window_bound_s ? 1 : 0;
    }
    EXPECT_GE(lag_covered, 0.9 * seeds);
    EXPECT_GE(window_covered, 0.9 * seeds);
}

TEST(PowerTiming, RefreshesOffTheGridStillTellTheWindow) {
    BurstSensor sensor = square_wave(3);
    const auto found = power_timing(
        sensor.regions(),
        sensor.power({.refresh_s = 0.1, .lag_s = 0.05, .window_s = 1.0, .jitter_s = 0.01}, 0.0043, 1));
    ASSERT_TRUE(found) << found.failure().reason;
    EXPECT_NEAR(found->refresh_s, 0.1, 0.005);
    EXPECT_NEAR(found->lag_s, 0.05, 0.005);
    EXPECT_NEAR(found->window_s, 1.0, 0.01);
}

TEST(PowerTiming, AMomentaryReadingHasNoWindow) {
    BurstSensor sensor = square_wave(5);
    const auto found = power_timing(
        sensor.regions(), sensor.power({.refresh_s = 0.1, .lag_s = 0.02, .window_s = 1e-6}, 0.0043));
    ASSERT_TRUE(found) << found.failure().reason;
    EXPECT_LE(found->window_s, found->window_bound_s + 1e-6);
    EXPECT_LT(found->window_bound_s, 0.03);
    EXPECT_NEAR(found->lag_s, 0.02, 0.02);
    EXPECT_LE(std::abs(found->lag_s - 0.02), found->lag_bound_s + found->window_bound_s);
}

TEST(PowerTiming, RefusesADeviceThatTheBurstsDoNotLoad) {
    BurstSensor sensor = square_wave(5, 80, 80);
    const auto found = power_timing(sensor.regions(), sensor.power({}, 0.0043, 1));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.failure().reason, "the reading does not follow the bursts");
}

TEST(PowerTiming, SaysWhatIsMissing) {
    BurstSensor sensor = square_wave(5);
    const auto regions = sensor.regions();
    const auto readings = sensor.power({}, 0.0043);
    EXPECT_EQ(power_timing({}, readings).failure().reason, "0 bursts are too few");
    EXPECT_EQ(power_timing(regions, {}).failure().reason, "the reading changed 0 times only");
    const auto sparse = power_timing(regions, sensor.power({.refresh_s = 0.02, .window_s = 0.1}, 0.03, 1));
    ASSERT_FALSE(sparse);
    EXPECT_EQ(sparse.failure().remedy, "read it more often");
}

}  // namespace
}  // namespace joulemark::meter
