// SPDX-License-Identifier: Apache-2.0
#include "meter/attribution.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "burst_sensor.h"

namespace joulemark::meter {
namespace {

using Timing = BurstSensor::Timing;
constexpr double poll_s = 0.007;

/// Two regions of unequal power in turn, without idle between them.
BurstSensor alternating(std::uint64_t seed, double burst_s, int repeats, double power_scatter) {
    BurstSensor sensor(100, seed);
    sensor.idle(2);
    for (int i = 0; i < repeats; ++i) {
        sensor.burst("forward", burst_s * sensor.uniform(0.9, 1.1), 600 * (1 + sensor.normal(power_scatter)));
        sensor.burst("backward", burst_s * sensor.uniform(0.9, 1.1),
                     250 * (1 + sensor.normal(power_scatter)));
    }
    sensor.idle(2);
    return sensor;
}

int repeats_for(double burst_s) {
    return std::clamp(static_cast<int>(20 / burst_s), 15, 100);
}

TEST(Attribution, KindsAreWithinThreePerCentAndBoundsCoverThemOver500Seeds) {
    int kinds = 0, covered = 0;
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        BurstSensor probe(0, seed + 1000);
        const double burst_s = 0.1 * std::pow(20, probe.uniform(0, 1));  // 0.1 to 2 s
        BurstSensor sensor = alternating(seed, burst_s, repeats_for(burst_s), 0.01);
        const auto found = attribute(sensor.regions(), sensor.refreshes(Timing{}, poll_s), {});
        ASSERT_TRUE(found) << found.failure().reason;
        for (const RegionKind& kind : found->kinds) {
            const double truth = sensor.mean_true_j(kind.name);
            worst = std::max(worst, std::abs(kind.mean.energy_j / truth - 1));
            covered += std::abs(kind.mean.energy_j - truth) <= kind.mean.bound_j ? 1 : 0;
            ++kinds;
        }
    }
    EXPECT_EQ(kinds, 1000);
    EXPECT_LT(worst, 0.03);
    EXPECT_GE(covered, 920);
    EXPECT_LE(covered, 980);
}

TEST(Attribution, AtThreeTenthsOfASecondTheMedianBoundIsBelowTenPerCent) {
    std::vector<double> relative;
    int inside = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        BurstSensor sensor = alternating(seed, 0.3, 40, 0.01);
        const auto found = attribute(sensor.regions(), sensor.refreshes(Timing{}, poll_s), {});
        ASSERT_TRUE(found);
        for (std::size_t i = 0; i < found->regions.size(); ++i) {
            ASSERT_TRUE(found->regions[i]);
            relative.push_back(found->regions[i]->bound_j / sensor.true_j(i));
            inside += std::abs(found->regions[i]->energy_j - sensor.true_j(i)) <= found->regions[i]->bound_j
                          ? 1
                          : 0;
        }
    }
    std::ranges::nth_element(relative, relative.begin() + static_cast<std::ptrdiff_t>(relative.size() / 2));
    EXPECT_LT(relative[relative.size() / 2], 0.1);
    EXPECT_GE(inside, static_cast<int>(0.95 * static_cast<double>(relative.size())));
}

TEST(Attribution, RefreshLagAndWindowAreRecovered) {
    for (const Timing timing : {Timing{}, Timing{.refresh_s = 0.02, .lag_s = 0.01, .window_s = 0.02},
                                Timing{.refresh_s = 0.1, .lag_s = -0.01, .window_s = 0.1},
                                Timing{.refresh_s = 0.1, .lag_s = 0.3, .window_s = 0.025}}) {
        BurstSensor sensor(80, 7);
        sensor.idle(2);
        for (int i = 0; i < 60; ++i) {
            sensor.burst("on", 0.45 * sensor.uniform(0.9, 1.1), 500);
            sensor.idle(0.55 * sensor.uniform(0.9, 1.1));
        }
        sensor.idle(2);
        const auto found = attribute(sensor.regions(), sensor.refreshes(timing, timing.refresh_s / 14), {});
        ASSERT_TRUE(found);
        EXPECT_NEAR(found->refresh_s, timing.refresh_s, 1e-5);
        EXPECT_NEAR(found->lag_s, timing.lag_s, 1e-3);
        EXPECT_NEAR(found->window_s, timing.window_s, 3e-3);
        EXPECT_NEAR(*found->idle_power_w, 80, 0.5);
    }
}

TEST(Attribution, CalibratedTimingIsTakenAsItIs) {
    BurstSensor sensor = alternating(3, 0.3, 40, 0);
    const auto refreshes = sensor.refreshes(Timing{}, poll_s);
    const auto found =
        attribute(sensor.regions(), refreshes, {.refresh_s = 0.1, .lag_s = 0.05, .window_s = 0.025});
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->calibrated);
    EXPECT_EQ(found->lag_s, 0.05);
    EXPECT_EQ(found->window_s, 0.025);
    for (const RegionKind& kind : found->kinds) {
        EXPECT_NEAR(kind.mean.energy_j / sensor.mean_true_j(kind.name), 1, 0.005);
    }
}

TEST(Attribution, LongRegionsReduceToTheDifferenceOfTheCounter) {
    BurstSensor sensor(100, 11);
    sensor.idle(3);
    // Power inside is far from even: only the counter knows.
    for (int i = 0; i < 6; ++i) {
        sensor.burst("long", 30, i % 2 == 0 ? 300 : 500);
        sensor.idle(3);
    }
    const auto refreshes = sensor.refreshes(Timing{}, poll_s);
    const auto regions = sensor.regions();
    const auto found = attribute(regions, refreshes, {});
    ASSERT_TRUE(found);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const auto at = [&](std::int64_t time_ns) {
            return std::ranges::lower_bound(refreshes, time_ns, {}, &Refresh::latest_ns)->value;
        };
        const double difference = at(regions[i].end_ns) - at(regions[i].start_ns);
        ASSERT_TRUE(found->regions[i]);
        EXPECT_NEAR(found->regions[i]->energy_j / difference, 1, 0.005);
        EXPECT_NEAR(found->regions[i]->energy_j / sensor.true_j(i), 1, 0.002);
    }
}

TEST(Attribution, NestedRegionsShareTheirEnergy) {
    BurstSensor sensor(100, 5);
    sensor.idle(2);
    for (int i = 0; i < 40; ++i) {
        sensor.burst("step", 0.25 * sensor.uniform(0.9, 1.1), 500);
        sensor.burst("pause", 0.15 * sensor.uniform(0.9, 1.1), 200);
    }
    sensor.idle(2);
    std::vector<RegionSpan> regions;
    double total_j = 0;
    const auto inner = sensor.regions();
    for (std::size_t i = 0; i < inner.size(); ++i) {
        total_j += sensor.true_j(i);
        if (inner[i].name == "step") {
            regions.push_back(inner[i]);
        }
    }
    regions.push_back({"epoch", inner.front().start_ns, inner.back().end_ns});
    const auto found = attribute(regions, sensor.refreshes(Timing{}, poll_s), {});
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->regions.back()->energy_j / total_j, 1, 0.002);
    const auto step = std::ranges::find(found->kinds, "step", &RegionKind::name);
    EXPECT_NEAR(step->mean.energy_j / sensor.mean_true_j("step"), 1, 0.01);
}

TEST(Attribution, OneNameOfTwoDurationsIsTwoKinds) {
    BurstSensor sensor(100, 5);
    sensor.idle(2);
    for (int i = 0; i < 24; ++i) {
        sensor.burst("burst", i < 12 ? 0.3 : 1.0, i < 12 ? 600 : 500);
        sensor.idle(0.73);
    }
    const auto found = attribute(sensor.regions(), sensor.refreshes(Timing{}, poll_s), {});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->kinds.size(), 2U);
    EXPECT_NEAR(found->kinds[0].mean.energy_j, 180, 2);
    EXPECT_NEAR(found->kinds[1].mean.energy_j, 500, 3);
}

TEST(Attribution, WithoutRepeatsABoundFollowsFromTheEdges) {
    BurstSensor sensor(100, 5);
    sensor.idle(3);
    sensor.burst("once", 0.5, 500);
    sensor.idle(3);
    const auto found = attribute(sensor.regions(), sensor.refreshes(Timing{}, poll_s), {});
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->regions[0]->energy_j, 250, 5);
    EXPECT_GE(found->regions[0]->bound_j, 0.1 * 400);
}

TEST(Attribution, RegionsOutsideWhatWasSeenAreNotAttributed) {
    BurstSensor sensor = alternating(1, 0.3, 20, 0);
    auto regions = sensor.regions();
    const auto refreshes = sensor.refreshes(Timing{}, poll_s);
    regions.push_back(
        {"late", refreshes.back().latest_ns - 100'000'000, refreshes.back().latest_ns + ns_per_s});
    const auto found = attribute(regions, refreshes, {});
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->regions.back());
}

TEST(Attribution, SaysWhatIsMissing) {
    EXPECT_EQ(attribute({}, {}, {}).failure().reason, "too few refreshes of the counter were seen");
    // In step with the refresh nothing tells the two halves apart.
    BurstSensor sensor(100, 2);
    for (int i = 0; i < 40; ++i) {
        sensor.burst("a", 0.05, 600);
        sensor.burst("b", 0.05, 200);
    }
    const auto found = attribute(sensor.regions(), sensor.refreshes(Timing{}, 0.0071),
                                 {.refresh_s = 0.1, .lag_s = 0.0, .window_s = 0.1});
    EXPECT_FALSE(found);
}

TEST(RefreshLog, KeepsWhatIsNearTheSpansOnly) {
    RefreshLog log({{10 * ns_per_s, 11 * ns_per_s}, {50 * ns_per_s, 51 * ns_per_s}});
    for (std::int64_t i = 0; i < 6000; ++i) {  // every 10 ms, refreshed every 100 ms
        log.add(i * 10'000'000, static_cast<double>(i / 10));
    }
    EXPECT_TRUE(log.resolved());
    EXPECT_NEAR(static_cast<double>(log.refreshes().size()), 60, 2);  // twice 3 s
    EXPECT_EQ(std::ranges::count(log.refreshes(), false, &Refresh::continues), 2);
    EXPECT_GE(log.refreshes().front().earliest_ns, 9 * ns_per_s - 10'000'000);
}

TEST(RefreshLog, ARefreshMayFallInsideTheReadThatShowsIt) {
    RefreshLog log({{0, ns_per_s}});
    log.add(100, 5, 30);
    log.add(200, 6, 40);
    ASSERT_EQ(log.refreshes().size(), 1U);
    EXPECT_EQ(log.refreshes()[0].earliest_ns, 100);
    EXPECT_EQ(log.refreshes()[0].latest_ns, 240);
}

TEST(RefreshLog, AResetBreaksTheChain) {
    RefreshLog log({{0, ns_per_s}});
    const double readings[] = {5, 6, 7, 1, 2, 3};
    for (int i = 0; i < 6; ++i) {
        log.add(i * 100'000'000, readings[i]);
    }
    ASSERT_EQ(log.refreshes().size(), 4U);
    EXPECT_TRUE(log.refreshes()[1].continues);
    EXPECT_FALSE(log.refreshes()[2].continues);
    EXPECT_FALSE(log.resolved()) << "every reading was new";
}

}  // namespace
}  // namespace joulemark::meter
