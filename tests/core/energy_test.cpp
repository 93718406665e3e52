// SPDX-License-Identifier: Apache-2.0
#include "core/energy.h"

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark {
namespace {

TEST(MaxGap, IsThreePeriodsAndNeverLessThanThreeSeconds) {
    EXPECT_EQ(max_gap_ns(0.1), 3 * ns_per_s);
    EXPECT_EQ(max_gap_ns(2), 6 * ns_per_s);
}

TEST(CounterPlausible, SpansMovesAndAgreesWithThePower) {
    const CounterEvidence good{.duration_s = 10,
                               .counter_j = 2000,
                               .counter_covered_s = 10,
                               .integral_j = 2100,
                               .power_covered_s = 10,
                               .peak_w = 300,
                               .bound_j = 50};
    EXPECT_TRUE(counter_plausible(good));
    const auto changed = [&](auto change) {
        CounterEvidence evidence = good;
        change(evidence);
        return counter_plausible(evidence);
    };
    EXPECT_FALSE(changed([](auto& e) { e.counter_covered_s = 9; }));
    EXPECT_TRUE(changed([](auto& e) { e.counter_covered_s = e.power_covered_s = 9; }));
    EXPECT_TRUE(changed([](auto& e) { e.still_s = 0.5; }));
    EXPECT_FALSE(changed([](auto& e) { e.still_s = 0.6; }));
    EXPECT_FALSE(changed([](auto& e) { e.counter_j = 0; }));
    EXPECT_TRUE(changed([](auto& e) { e.counter_j = 4550; }));
    EXPECT_FALSE(changed([](auto& e) { e.counter_j = 4551; }));
    EXPECT_TRUE(changed([](auto& e) { e.counter_j = 650; }));
    EXPECT_FALSE(changed([](auto& e) { e.counter_j = 649; }));
}

}  // namespace
}  // namespace joulemark
