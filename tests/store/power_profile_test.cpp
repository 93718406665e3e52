// SPDX-License-Identifier: Apache-2.0
#include "store/power_profile.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark::store {
namespace {

constexpr std::int64_t s = ns_per_s;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(PowerProfile, OfASquareWave) {
    // Ten seconds at 100 W and idle, ten at 300 W at the limit, ten samples a second, for 100 periods.
    const Edges edges({0, 2000 * s});
    PowerProfile profile(edges, s);
    for (int i = 0; i <= 20000; ++i) {
        const bool high = (i / 100) % 2 == 1;
        profile.add(i * s / 10, high ? 300 : 100, 300, high ? 100 : 0);
    }
    const auto shape = profile.over(0, 2000 * s);
    ASSERT_TRUE(shape);
    EXPECT_NEAR(shape->p5_w, 100, 7);
    EXPECT_NEAR(shape->p95_w, 300, 21);
    EXPECT_NEAR(shape->sd_w, 100, 0.1);
    EXPECT_NEAR(shape->fluctuation_hz, 1 / 20.0, 0.001);
    EXPECT_NEAR(*shape->at_limit_pct, 50, 0.1);
    EXPECT_NEAR(*shape->idle_pct, 50, 0.1);
}

TEST(PowerProfile, SteadyPowerWithNoiseDoesNotFluctuate) {
    const Edges edges({0, 100 * s});
    PowerProfile profile(edges, s);
    for (int i = 0; i <= 1000; ++i) {
        profile.add(i * s / 10, 500 + (i % 2 == 0 ? 10 : -10), nan, nan);
    }
    const auto shape = profile.over(0, 100 * s);
    EXPECT_EQ(shape->fluctuation_hz, 0);
    EXPECT_NEAR(shape->sd_w, 10, 0.1);
    EXPECT_NEAR(shape->median_w, 500, 35);
    EXPECT_EQ(shape->at_limit_pct, std::nullopt) << "no limit was known";
    EXPECT_EQ(shape->idle_pct, std::nullopt);
}

TEST(PowerProfile, WindowsAreCutAtTheirEdgesAndGapsCountForNothing) {
    const Edges edges({0, 10 * s, 15 * s, 40 * s});
    PowerProfile profile(edges, 2 * s);
    for (int t = 0; t <= 10; ++t) {
        profile.add(t * s, 100, nan, nan);
    }
    profile.add(20 * s, 400, nan, nan);  // after a gap of ten seconds
    profile.add(21 * s, 400, nan, nan);
    EXPECT_NEAR(profile.over(0, 10 * s)->median_w, 100, 7);
    EXPECT_EQ(profile.over(10 * s, 15 * s), std::nullopt) << "nothing but the gap";
    EXPECT_NEAR(profile.over(15 * s, 40 * s)->median_w, 400, 28);
    const auto all = profile.over(0, 40 * s);
    EXPECT_NEAR(all->sd_w, std::sqrt(10 / 11.0 * 1 / 11.0) * 300, 0.1) << "ten seconds and one";
}

}  // namespace
}  // namespace joulemark::store
