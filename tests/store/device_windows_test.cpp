// SPDX-License-Identifier: Apache-2.0
#include "store/device_windows.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark::store {
namespace {

using enum sensors::Metric;
using sensors::Metric;

constexpr std::int64_t s = ns_per_s;

DeviceFacts v100() {
    return {.id = "gpu0",
            .component = "gpu",
            .memory_bytes = 16e9,
            .power_limit_w = 250,
            .sources = {{.metrics = {gpu_power_w, gpu_busy_pct}, .period_s = 1, .native_period_s = 0.1},
                        {.metrics = {gpu_energy_j}, .period_s = 1, .native_period_s = 0.1}},
            .period_s = 1};
}

DeviceFacts cpu(const char* id, SourceFacts source) {
    DeviceFacts facts;
    facts.id = id;
    facts.component = "cpu";
    facts.sources.push_back(std::move(source));
    return facts;
}

struct Fixture {
    Edges edges;
    DeviceWindows windows;

    explicit Fixture(std::vector<std::int64_t> times, DeviceFacts facts = v100())
        : edges(std::move(times)), windows(edges, edges, std::move(facts)) {}
    void put(std::int64_t time, Metric metric, double value) { windows.add(time, {&metric, 1}, {&value, 1}); }
    void put(std::int64_t time, std::vector<Metric> metrics, std::vector<double> values) {
        windows.add(time, metrics, values);
    }
    DeviceMetrics over(std::int64_t start, std::int64_t end) const {
        return windows.over({start, end, start, end});
    }
};

TEST(DeviceWindows, ARowOutOfOrderCountsOnceWhateverItHolds) {
    Fixture gpu({0, 4 * s});
    gpu.put(s, {gpu_power_w, gpu_busy_pct}, {100, 50});
    gpu.put(3 * s, {gpu_power_w, gpu_busy_pct}, {100, 50});
    gpu.put(2 * s, {gpu_power_w, gpu_busy_pct}, {900, 60});
    gpu.put(2 * s, {gpu_power_w, gpu_busy_pct}, {nan, 60});
    EXPECT_THAT(gpu.windows.warnings(),
                testing::ElementsAre(testing::Field(
                    &Warning::text, "gpu0: 2 rows are not later than the one before: left out")));
    EXPECT_EQ(*gpu.over(0, 4 * s).max_power_w, 100);
}

TEST(DeviceWindows, CounterFirstIntegralSecondProtocolBeside) {
    Fixture gpu({0, 4 * s});
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, {gpu_power_w, gpu_busy_pct}, {t < 2 ? 100.0 : 200.0, 50});
        gpu.put(t * s + 1, gpu_energy_j, 1000 + 160.0 * t);
    }
    const DeviceMetrics m = gpu.over(0, 4 * s);
    EXPECT_NEAR(*m.energy_counter_j, 640, 1e-3);
    EXPECT_NEAR(*m.energy_integrated_j, 100 + 150 + 200 + 200, 1e-6);
    EXPECT_NEAR(*m.energy_protocol_j, 4 * (100 + 100 + 200 + 200 + 200) / 5.0, 1e-6);
    EXPECT_EQ(m.energy_j, m.energy_counter_j);
    EXPECT_EQ(m.energy_method, "counter");
    EXPECT_NEAR(*m.energy_bound_j, 200 * 2 * 0.1, 1e-3) << "two edges, each stale by one refresh";
    EXPECT_NEAR(*m.mean_power_w, 162.5, 1e-6);
    EXPECT_EQ(m.max_power_w, 200);
    EXPECT_EQ(m.samples, 5);
    EXPECT_DOUBLE_EQ(m.covered_s, 4);
    EXPECT_DOUBLE_EQ(*m.gpu_busy_pct, 50);
    EXPECT_EQ(m.sm_util_pct, std::nullopt);
    EXPECT_EQ(m.gpu_memory_util_pct, std::nullopt);
}

TEST(DeviceWindows, PowerThatCannotBeTrueIsAGap) {
    Fixture gpu({0, 4 * s});
    const double told[] = {100, 1e9, -5, 100, 100};
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, {gpu_power_w, gpu_busy_pct}, {told[t], 50});
    }
    const DeviceMetrics m = gpu.over(0, 4 * s);
    EXPECT_NEAR(*m.energy_j, 100, 1e-6) << "one of four seconds is covered";
    EXPECT_EQ(m.max_power_w, 100);
    EXPECT_DOUBLE_EQ(m.covered_s, 1);
    const auto warnings = gpu.windows.warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0].text,
              "gpu0: 2 power readings (the first 1000000000 W) cannot be true: taken as a gap");
}

TEST(DeviceWindows, ASensorThatOnlySaysZeroMeasuresNothing) {
    Fixture gpu({0, 4 * s});
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, {gpu_power_w, gpu_busy_pct}, {0, 50});
    }
    const DeviceMetrics m = gpu.over(0, 4 * s);
    EXPECT_EQ(m.energy_j, std::nullopt);
    EXPECT_EQ(m.energy_integrated_j, std::nullopt);
    ASSERT_EQ(gpu.windows.warnings().size(), 1U);
    EXPECT_EQ(gpu.windows.warnings()[0].text,
              "gpu0: power_w was 0 W in all 5 samples: the sensor measures nothing");
}

TEST(DeviceWindows, InstantPowerIsPreferredToTheAverage) {
    Fixture gpu({0, s});
    for (int t = 0; t <= 1; ++t) {
        gpu.put(t * s, {gpu_power_average_w, gpu_power_w, gpu_power_instant_w}, {300, 200, 100});
    }
    EXPECT_DOUBLE_EQ(*gpu.over(0, s).energy_integrated_j, 100);
}

TEST(DeviceWindows, AGapAddsNothingAndIsBounded) {
    Fixture gpu({0, 10 * s});
    for (const int t : {0, 1, 2, 8, 9, 10}) {
        gpu.put(t * s, gpu_power_w, t == 1 ? 180 : 100);
    }
    const DeviceMetrics m = gpu.over(0, 10 * s);
    EXPECT_DOUBLE_EQ(*m.energy_integrated_j, 2 * 140 + 2 * 100);
    EXPECT_DOUBLE_EQ(m.covered_s, 4);
    EXPECT_EQ(m.energy_j, m.energy_integrated_j);
    EXPECT_EQ(m.energy_method, "integrated");
    EXPECT_DOUBLE_EQ(*m.energy_bound_j, 250 * (6 + 4 * 0.9 + 2 * 0.1))
        << "the limit all through the gap, and between samples further apart than the sensor's refreshes";
}

TEST(DeviceWindows, AFailedReadIsAGapButAnotherSourcesRowIsNone) {
    Fixture gpu({0, 4 * s});
    const std::vector<Metric> all{gpu_power_w, gpu_busy_pct, gpu_energy_j};
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, all, {t == 2 ? nan : 100.0, 50, nan});  // the power read fails once
        gpu.put(t * s + s / 2, all, {nan, nan, 1000.0 + t});   // the counter writes rows of its own
    }
    EXPECT_DOUBLE_EQ(gpu.over(0, 4 * s).covered_s, 2);
    EXPECT_DOUBLE_EQ(*gpu.over(0, 4 * s).gpu_busy_pct, 50);
}

TEST(DeviceWindows, ARowWithoutValuesIsAGapOfTheSourceWhoseOwnRowIsMissing) {
    DeviceFacts facts = v100();
    facts.sources.push_back({.metrics = {gpu_sm_util_pct}, .period_s = 1});
    Fixture gpu({0, 8 * s}, facts);
    const std::vector<Metric> all{gpu_power_w, gpu_busy_pct, gpu_energy_j, gpu_sm_util_pct};
    for (int t = 0; t <= 8; ++t) {  // on a simulated clock a tick's rows have one time
        const bool power_fails = t == 3, counter_fails = t == 5, sm_fails = t == 7 || power_fails;
        gpu.put(t * s, all, {power_fails ? nan : 100.0, power_fails ? nan : 50, nan, nan});
        gpu.put(t * s, all, {nan, nan, counter_fails ? nan : 100.0 * t, nan});
        gpu.put(t * s, all, {nan, nan, nan, sm_fails ? nan : 80.0});
    }
    const DeviceMetrics m = gpu.over(0, 8 * s);
    EXPECT_DOUBLE_EQ(m.covered_s, 6) << "the failed read of power and no other";
    EXPECT_EQ(m.energy_counter_j, 800);
    EXPECT_DOUBLE_EQ(*m.energy_integrated_j, 600);
}

/// An H200; two threads read it, and their rows come in blocks.
DeviceFacts h200() {
    return {.id = "gpu0",
            .component = "gpu",
            .memory_bytes = {},
            .power_limit_w = 700,
            .simulated = true,  // it may stand still
            .sources = {{.metrics = {gpu_power_w, gpu_busy_pct}, .period_s = 0.1, .native_period_s = 0.1},
                        {.metrics = {gpu_energy_j}, .period_s = 0.1, .native_period_s = 0.1}},
            .period_s = 0.1};
}
const std::vector<Metric> h200_columns{gpu_power_w, gpu_busy_pct, gpu_energy_j};
constexpr std::int64_t tick = s / 10;

TEST(DeviceWindows, AFailingCounterEndsNoSeriesOfPower) {
    for (const int ahead : {0, 1, 7}) {  // by so many ticks the counter's rows are ahead of the power's
        for (const std::int64_t shift : {std::int64_t{0}, tick / 3}) {
            Fixture gpu({0, 60 * s}, h200());
            for (int t = -ahead; t <= 600; ++t) {
                if (t + ahead <= 600) {
                    const bool failed = t + ahead > 100;
                    gpu.put((t + ahead) * tick + shift, h200_columns,
                            {nan, nan, failed ? nan : 60.0 * (t + ahead)});
                }
                if (t >= 0) {
                    gpu.put(t * tick, h200_columns, {600, 90, nan});
                }
            }
            const DeviceMetrics m = gpu.over(0, 60 * s);
            EXPECT_NEAR(*m.energy_j, 36000, 1e-6) << ahead << ' ' << shift;
            EXPECT_DOUBLE_EQ(m.covered_s, 60) << ahead << ' ' << shift;
            EXPECT_TRUE(gpu.windows.warnings().empty());
        }
    }
}

TEST(DeviceWindows, ADeviceLostForAWhileIsAGapInAllItsSeries) {
    Fixture gpu({0, 10 * s}, h200());
    for (int t = 0; t <= 100; ++t) {
        const bool lost = t > 40 && t < 60;
        gpu.put(t * tick, h200_columns, {lost ? nan : 600.0, lost ? nan : 90.0, nan});
        gpu.put(t * tick, h200_columns, {nan, nan, lost ? nan : 60.0 * t});
    }
    const DeviceMetrics m = gpu.over(0, 10 * s);
    EXPECT_NEAR(m.covered_s, 8, 1e-9);
    EXPECT_NEAR(*m.energy_integrated_j, 4800, 1e-6);
    EXPECT_NEAR(*m.energy_j, 6000, 1e-6) << "the counter bridges it";
}

/// One metric's value of each tick of 0.1 s.
template <typename Power, typename Energy>
void feed(Fixture& gpu, double seconds, Power power_w, Energy energy_j) {
    for (int t = 0; t <= static_cast<int>(10 * seconds); ++t) {
        const double power = power_w(0.1 * t), energy = energy_j(0.1 * t);
        gpu.put(t * tick, h200_columns, {power, 90, nan});
        gpu.put(t * tick, h200_columns, {nan, nan, energy});
    }
}

TEST(DeviceWindows, APowerThatStandsStillIsNoWitnessAgainstACounterThatMoves) {
    const auto energy_j = [](double t) {
        return 600 * std::min(t, 20.0) + 80 * std::max(t - 20, 0.0);
    };
    // Without any movement before, as of a simulated load, and with the noise of a real one.
    for (const bool noise : {false, true}) {
        DeviceFacts facts = h200();
        facts.simulated = !noise;
        Fixture gpu({0, 300 * s, 620 * s}, facts);
        const auto power_w = [&](double t) { return noise && t < 10 ? 600 + std::fmod(10 * t, 7) : 600; };
        feed(gpu, 620, power_w, energy_j);
        for (const auto& [from, until] : {std::pair(0, 620), {300, 620}}) {
            const DeviceMetrics m = gpu.over(from * s, until * s);
            EXPECT_EQ(m.energy_method, "counter");
            EXPECT_NEAR(*m.energy_j, energy_j(until) - energy_j(from), 1e-6);
        }
        EXPECT_EQ(std::ranges::count(gpu.windows.warnings(), "stuck_sensor", &Warning::code), 1);
    }
}

TEST(DeviceWindows, WhatAStuckSensorSaysIsBoundedLikeAGap) {
    Fixture gpu({0, 200 * s}, h200());
    const auto power_w = [](double t) { return t < 100 ? 80 + std::fmod(10 * t, 7) : 80; };
    feed(gpu, 200, power_w, [](double) { return nan; });
    const DeviceMetrics m = gpu.over(0, 200 * s);
    EXPECT_EQ(m.energy_method, "integrated");
    EXPECT_NEAR(*m.energy_bound_j, 700 * (100 + 2 * 0.1), 100);
}

TEST(DeviceWindows, WhereNothingTellsWhoIsWrongTheBoundHoldsBoth) {
    Fixture gpu({0, 100 * s}, h200());
    const auto power_w = [](double t) { return 500 + std::fmod(10 * t, 7); };
    feed(gpu, 100, power_w, [](double t) { return 100 * t; });
    const DeviceMetrics m = gpu.over(0, 100 * s);
    EXPECT_EQ(m.energy_method, "integrated");
    EXPECT_GE(*m.energy_bound_j, *m.energy_j - 10000);
    EXPECT_LT(*m.energy_bound_j, 1.02 * (*m.energy_j - 10000));
}

TEST(DeviceWindows, ACounterThatStopsMovingIsNotBelievedBeforeItIsCalledFrozen) {
    const auto power_w = [](double) { return 600; };
    const auto frozen_j = [](double t) { return 600 * std::min(t, 8.0); };
    Fixture gpu({0, 4 * s, 8 * s, 12 * s, 15 * s}, h200());
    feed(gpu, 15, power_w, frozen_j);
    for (const auto& [from, until] : {std::pair(0, 15), {8, 15}, {4, 12}, {12, 15}}) {
        const DeviceMetrics m = gpu.over(from * s, until * s);
        EXPECT_EQ(m.energy_method, "integrated") << from << ' ' << until;
        EXPECT_NEAR(*m.energy_j, 600 * (until - from), 1e-6);
    }
    EXPECT_EQ(gpu.over(0, 8 * s).energy_method, "counter");
    // In a long window, or without a power, the counter counts, and its bound holds what it missed.
    Fixture late({0, 1000 * s}, h200());
    feed(late, 1000, power_w, [](double t) { return 600 * std::min(t, 992.0); });
    const DeviceMetrics m = late.over(0, 1000 * s);
    EXPECT_EQ(m.energy_method, "counter");
    EXPECT_GE(*m.energy_bound_j, 600 * 8);
    EXPECT_LT(*m.energy_bound_j, 700 * 8.2);
    // It moves again, and what it missed is lost.
    Fixture resumed({0, 15 * s}, h200());
    feed(resumed, 15, power_w, [](double t) { return 600 * (t < 3 ? t : std::max(3.0, t - 5)); });
    EXPECT_NEAR(*resumed.over(0, 15 * s).energy_j, 9000, 1e-6);
}

TEST(DeviceWindows, TheBoundOfAnIntegralKnowsHowFarApartItsSamplesWere) {
    DeviceFacts facts = h200();
    facts.sources = {{.metrics = {gpu_power_w}, .period_s = 10, .native_period_s = 0.1}};
    Fixture gpu({0, 350 * s}, facts);
    double true_j = 0;
    for (int t = 0; t <= 350; t += 10) {
        gpu.put(t * s, gpu_power_w, t % 60 == 0 ? 80 : 600);
        true_j += t > 0 ? 10 * (80 + 600) / 2 : 0;  // five seconds of each, not at all as sampled
    }
    const DeviceMetrics m = gpu.over(0, 350 * s);
    EXPECT_LE(std::abs(*m.energy_j - true_j), *m.energy_bound_j);
    EXPECT_NEAR(*m.energy_bound_j, 700 * 350 * 0.99, 700);
    facts.sources[0].estimated = true;  // made from all the time since the one before
    Fixture estimate({0, 350 * s}, facts);
    for (int t = 0; t <= 350; t += 10) {
        estimate.put(t * s, gpu_power_w, 300);
    }
    EXPECT_NEAR(*estimate.over(0, 350 * s).energy_bound_j, 700 * 2 * 0.1, 1e-6);
}

TEST(DeviceWindows, WhatIsBeyondTheLastSampleIsBoundedByTheDevicesLimit) {
    Fixture gpu({0, 230 * s}, h200());
    feed(gpu, 13, [](double) { return 80; }, [](double t) { return 80 * t; });
    EXPECT_GE(*gpu.over(0, 230 * s).energy_bound_j, 700 * 217);
    Fixture raised({0, 230 * s}, h200());
    for (int t = 0; t <= 13; ++t) {
        raised.put(t * s, {gpu_power_w, gpu_power_limit_w}, {80, 1000});
    }
    EXPECT_GE(*raised.over(0, 230 * s).energy_bound_j, 1000 * 217);
}

TEST(DeviceWindows, ACounterThatDoesNotMoveIsNoZeroEnergy) {
    Fixture gpu({0, 4 * s});
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, gpu_power_w, 100);
        gpu.put(t * s + 1, gpu_energy_j, 5000);
    }
    const DeviceMetrics m = gpu.over(0, 4 * s);
    EXPECT_EQ(m.energy_counter_j, 0);
    EXPECT_EQ(m.energy_j, 400);
    EXPECT_EQ(m.energy_method, "integrated");
}

TEST(DeviceWindows, ACounterBeyondAllPowerIsNotBelieved) {
    Fixture gpu({0, 4 * s});
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, gpu_power_w, 100);
        gpu.put(t * s + 1, gpu_energy_j, t < 3 ? 5000.0 : 267'000.0);  // a wrap undone twice
    }
    EXPECT_EQ(gpu.over(0, 4 * s).energy_method, "integrated");
}

TEST(DeviceWindows, ACounterThatWentBackGivesNoDifferenceAcrossIt) {
    Fixture gpu({0, 2 * s, 4 * s});
    for (int t = 0; t <= 4; ++t) {
        gpu.put(t * s, gpu_energy_j, t < 3 ? 5000.0 + 100 * t : 100.0 * t);
    }
    EXPECT_EQ(gpu.over(0, 2 * s).energy_j, 200);
    const DeviceMetrics across = gpu.over(2 * s, 4 * s);
    EXPECT_EQ(across.energy_counter_j, std::nullopt);
    EXPECT_EQ(across.energy_j, 100) << "what is known without a power";
    EXPECT_DOUBLE_EQ(*across.energy_bound_j, 250 * (1 + 2 * 0.1)) << "the lost second at full power";
    ASSERT_EQ(gpu.windows.warnings().size(), 1u);
    EXPECT_EQ(gpu.windows.warnings()[0].code, "counter_reset");
}

TEST(DeviceWindows, AcrossACountersResetTheIntegralCounts) {
    Fixture gpu({0, 10 * s});
    for (int t = 0; t <= 10; ++t) {
        gpu.put(t * s, gpu_power_w, 200);
        gpu.put(t * s + 1, gpu_energy_j, t < 5 ? 200.0 * t : 200.0 * (t - 5));
    }
    const DeviceMetrics m = gpu.over(0, 10 * s);
    EXPECT_DOUBLE_EQ(*m.energy_j, 2000);
    EXPECT_EQ(m.energy_method, "integrated");
}

TEST(DeviceWindows, AWindowWithoutSamplesTakesThePowerAroundIt) {
    Fixture gpu({s / 4, s / 2});
    gpu.put(0, gpu_power_w, 100);
    gpu.put(s, gpu_power_w, 200);
    const DeviceMetrics m = gpu.over(s / 4, s / 2);
    EXPECT_NEAR(*m.energy_j, 0.25 * 137.5, 1e-9);
    EXPECT_EQ(m.samples, 0);
    EXPECT_EQ(m.energy_protocol_j, std::nullopt) << "the protocol has no sample to average";
    EXPECT_GT(*m.energy_bound_j, 0);
}

TEST(DeviceWindows, ACounterAloneGivesPowerAndCoverage) {
    Fixture processor({0, 2 * s}, cpu("cpu0", {.metrics = {cpu_energy_j}}));
    for (int t = 0; t <= 2; ++t) {
        processor.put(t * s, {cpu_energy_j, cpu_process_s}, {50.0 * t, 3.0 * t});
    }
    const DeviceMetrics m = processor.over(0, 2 * s);
    EXPECT_EQ(m.energy_j, 100);
    EXPECT_EQ(m.mean_power_w, 50);
    EXPECT_EQ(m.covered_s, 2);
    EXPECT_EQ(m.energy_integrated_j, std::nullopt);
    EXPECT_EQ(m.process_cpu_s, 6);
}

TEST(DeviceWindows, AnEstimateIsCalledOne) {
    Fixture processor({0, s}, cpu("cpu", {.metrics = {cpu_power_w}, .estimated = true}));
    processor.put(0, cpu_power_w, 60);
    processor.put(s, cpu_power_w, 60);
    EXPECT_EQ(processor.over(0, s).energy_method, "estimated");
}

TEST(DeviceWindows, ThrottlingCountsLimitsOfPowerAndHeatOnly) {
    Fixture gpu({0, 4 * s});
    const double idle = 0x1, power_cap = 0x4, thermal = 0x20;
    int t = 0;
    for (const double mask : {idle, power_cap, thermal, idle, idle}) {
        gpu.put(t++ * s, gpu_throttle_reasons, mask);
    }
    EXPECT_DOUBLE_EQ(*gpu.over(0, 4 * s).throttled_pct, 50);
}

TEST(DeviceWindows, MemoryIsAShareOfTheDevice) {
    Fixture gpu({0, 2 * s});
    gpu.put(0, gpu_memory_used_bytes, 4e9);
    gpu.put(s, gpu_memory_used_bytes, 4e9);
    gpu.put(2 * s, gpu_memory_used_bytes, 12e9);
    EXPECT_DOUBLE_EQ(*gpu.over(0, 2 * s).gpu_memory_util_pct, 100 * (4e9 + 8e9) / 2 / 16e9);
    EXPECT_DOUBLE_EQ(*gpu.over(0, 2 * s).gpu_memory_max_pct, 75);
}

TEST(DeviceWindows, AnOpenWindowEndsWithItsLastSample) {
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    Fixture gpu({0, never});
    for (int t = 0; t <= 3; ++t) {
        gpu.put(t * s, gpu_power_w, 100);
        gpu.put(t * s + 1, gpu_energy_j, 100.0 * t);
    }
    const DeviceMetrics m = gpu.windows.over({0, never, 0, 3 * s + 1});
    EXPECT_EQ(m.energy_j, 300);
    EXPECT_NEAR(*m.energy_bound_j, 100 * 0.2, 1e-6);
}

TEST(DeviceWindows, SeriesBreakWhereTheSamplesDo) {
    Fixture gpu({0, s});
    for (const int t : {0, 1, 2, 20, 21}) {
        gpu.put(t * s, gpu_power_w, 100 + t);
    }
    const auto all = gpu.windows.series();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].metric, "power_w");
    EXPECT_THAT(all[0].time_ns, testing::ElementsAre(0, s, 2 * s, 6 * s, 20 * s, 21 * s));
    EXPECT_THAT(all[0].mean, testing::ElementsAre(100, 101, 102, testing::IsNan(), 120, 121));
}

TEST(DeviceWindows, ACountersSeriesIsThePowerItImplies) {
    Fixture gpu({0, s});
    for (int t = 0; t <= 30; ++t) {
        gpu.put(t * s / 10, gpu_energy_j, 10.0 * t);
    }
    const auto all = gpu.windows.series();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].metric, "counter_power_w");
    EXPECT_THAT(all[0].mean, testing::ElementsAre(100, 100, 100));
}

TEST(DeviceWindows, AStuckSensorIsLoud) {
    Fixture gpu({0, s});
    for (int t = 0; t < 100; ++t) {
        gpu.put(t * s, gpu_power_w, 70);
    }
    ASSERT_EQ(gpu.windows.warnings().size(), 1u);
    EXPECT_EQ(gpu.windows.warnings()[0].code, "stuck_sensor");
}

TEST(DeviceWindows, ASensorThatStopsToFollowIsLoudToo) {
    DeviceFacts simulated = v100();
    simulated.simulated = true;
    DeviceFacts estimate = cpu("cpu0", {.metrics = {cpu_power_w}, .period_s = 1, .estimated = true});
    for (const auto& [facts, metric, warned] : {std::tuple(v100(), gpu_power_w, true),
                                                {simulated, gpu_power_w, true},
                                                {estimate, cpu_power_w, false}}) {
        Fixture device({0, s}, facts);
        for (int t = 0; t < 300; ++t) {
            device.put(t * s, metric, t < 50 ? 70.0 + t % 7 : 73);
        }
        EXPECT_EQ(std::ranges::count(device.windows.warnings(), "stuck_sensor", &Warning::code),
                  warned ? 1 : 0)
            << facts.id;
    }
}

TEST(DeviceWindows, LongPhasesOfEqualPowerAreNoStuckSensor) {
    Fixture gpu({0, s});
    for (int t = 0; t < 3000; ++t) {
        gpu.put(t * s, gpu_power_w, t / 150 % 2 == 0 ? 250 : 60);
    }
    EXPECT_TRUE(gpu.windows.warnings().empty());
}

}  // namespace
}  // namespace joulemark::store
