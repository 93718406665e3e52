// SPDX-License-Identifier: Apache-2.0
#include "store/power_profile.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark::store {
namespace {

constexpr std::int64_t second = ns_per_s;

TEST(PowerProfile, OfASquareWave) {
    // Ten seconds at 100 W and idle, ten at 300 W at the limit, ten samples a second, for 100 periods.
    const Edges edges({0, 2000 * second});
    PowerProfile profile(edges, second);
    for (int i = 0; i <= 20000; ++i) {
        const bool high = (i / 100) % 2 == 1;
        profile.add(i * second / 10, high ? 300 : 100, 300, high ? 100 : 0);
    }
    const auto shape = profile.over(0, 2000 * second);
    ASSERT_TRUE(shape);
    EXPECT_NEAR(shape->p5_w, 100, 7);
    EXPECT_NEAR(shape->p95_w, 300, 21);
    EXPECT_NEAR(shape->sd_w, 100, 0.1);
    EXPECT_NEAR(shape->fluctuation_hz, 1 / 20.0, 0.001);
    EXPECT_NEAR(*shape->at_limit_pct, 50, 0.1);
    EXPECT_NEAR(*shape->idle_pct, 50, 0.1);
}

TEST(PowerProfile, SteadyPowerWithNoiseDoesNotFluctuate) {
    const Edges edges({0, 100 * second});
    PowerProfile profile(edges, second);
    for (int i = 0; i <= 1000; ++i) {
        profile.add(i * second / 10, 500 + (i % 2 == 0 ? 10 : -10), nan, nan);
    }
    const auto shape = profile.over(0, 100 * second);
    EXPECT_EQ(shape->fluctuation_hz, 0);
    EXPECT_NEAR(shape->sd_w, 10, 0.1);
    EXPECT_NEAR(shape->median_w, 500, 35);
    EXPECT_EQ(shape->at_limit_pct, std::nullopt) << "no limit was known";
    EXPECT_EQ(shape->idle_pct, std::nullopt);
}

TEST(PowerProfile, WindowsAreCutAtTheirEdgesAndGapsCountForNothing) {
    const Edges edges({0, 10 * second, 15 * second, 40 * second});
    PowerProfile profile(edges, 2 * second);
    for (int t = 0; t <= 10; ++t) {
        profile.add(t * second, 100, nan, nan);
    }
    profile.add(20 * second, 400, nan, nan);  // after a gap of ten seconds
    profile.add(21 * second, 400, nan, nan);
    EXPECT_NEAR(profile.over(0, 10 * second)->median_w, 100, 7);
    EXPECT_EQ(profile.over(10 * second, 15 * second), std::nullopt) << "nothing but the gap";
    EXPECT_NEAR(profile.over(15 * second, 40 * second)->median_w, 400, 28);
    const auto all = profile.over(0, 40 * second);
    EXPECT_NEAR(all->sd_w, std::sqrt(10 / 11.0 * 1 / 11.0) * 300, 0.1) << "ten seconds and one";
}

}  // namespace
}  // namespace joulemark::store
