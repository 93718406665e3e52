// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"

#include <thread>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark {
namespace {

TEST(MonotonicClock, SleepsUntilTheDeadline) {
    MonotonicClock clock;
    const std::int64_t deadline = clock.now_ns() + nanoseconds(0.02);
    EXPECT_TRUE(clock.sleep_until(deadline, {}));
    EXPECT_GE(clock.now_ns(), deadline);
}

TEST(MonotonicClock, StopEndsASleepEarly) {
    MonotonicClock clock;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_FALSE(clock.sleep_until(clock.now_ns() + nanoseconds(3600), stop.get_token()));
}

TEST(Units, NanosecondsRoundToNearest) {
    EXPECT_EQ(nanoseconds(1.5e-9), 2);
    EXPECT_EQ(nanoseconds(-1.5e-9), -2);
    EXPECT_DOUBLE_EQ(seconds(1'500'000'000), 1.5);
    EXPECT_DOUBLE_EQ(kwh(3.6e6), 1.0);
}

}  // namespace
}  // namespace joulemark
