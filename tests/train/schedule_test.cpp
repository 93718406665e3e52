// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.h"

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(ScaledLr, FollowsTheGlobalBatch) {
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::linear, 8192, 256), 3.2);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::linear, 256, 256), 0.1);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::square_root, 1024, 256), 0.2);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::none, 8192, 256), 0.1);
}

TEST(DefaultWarmup, IsTheStudysShareOfTheRun) {
    EXPECT_DOUBLE_EQ(default_warmup_epochs(0.05, 100), 5);
    EXPECT_DOUBLE_EQ(default_warmup_epochs(0.05, 300), 5);
    EXPECT_DOUBLE_EQ(default_warmup_epochs(0.05, 2), 0.1);
}

TEST(LrSchedule, WarmsUpLinearly) {
    const LrSchedule schedule({.peak = 1, .warmup_steps = 4});
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.25);
    EXPECT_DOUBLE_EQ(schedule.lr(3), 1.0);
    EXPECT_DOUBLE_EQ(schedule.lr(1000), 1.0);
    EXPECT_DOUBLE_EQ(LrSchedule({.peak = 1}).lr(0), 1.0);
}

TEST(LrSchedule, FallsToZeroAfterTheWarmUp) {
    const LrSchedule cosine({.curve = LrCurve::cosine, .peak = 2, .warmup_steps = 10, .steps = 110});
    EXPECT_DOUBLE_EQ(cosine.lr(4), 1);
    EXPECT_DOUBLE_EQ(cosine.lr(10), 2);
    EXPECT_DOUBLE_EQ(cosine.lr(60), 1);
    EXPECT_NEAR(cosine.lr(109), 0, 1e-3);
    EXPECT_GT(cosine.lr(109), 0);  // the last update still learns
    EXPECT_DOUBLE_EQ(cosine.lr(1000), 0);
    const LrSchedule line({.curve = LrCurve::linear, .peak = 2, .warmup_steps = 10, .steps = 110});
    EXPECT_DOUBLE_EQ(line.lr(35), 1.5);
    EXPECT_NEAR(line.lr(109), 0.02, 1e-12);  // the last update still learns
    EXPECT_DOUBLE_EQ(line.lr(110), 0);
}

TEST(LrSchedule, GoesOnFromAState) {
    LrSchedule first({.curve = LrCurve::plateau, .peak = 1});
    LrSchedule second = first;
    for (int epoch = 0; epoch < 4; ++epoch) {
        first.watch(2.0);
    }
    second.restore(first.state());
    for (int epoch = 0; epoch < 3; ++epoch) {
        first.watch(2.0);
        second.watch(2.0);
    }
    EXPECT_DOUBLE_EQ(second.lr(0), 0.5);
    EXPECT_DOUBLE_EQ(first.lr(0), 0.5);
}

TEST(LrSchedule, HalvesAfterMoreThanFiveEpochsWithoutImprovement) {
    LrSchedule schedule({.curve = LrCurve::plateau, .peak = 1});
    schedule.watch(2.0);
    for (int epoch = 0; epoch < 5; ++epoch) {
        schedule.watch(2.0);
        EXPECT_DOUBLE_EQ(schedule.lr(0), 1.0) << epoch;
    }
    schedule.watch(1.9999);  // less than the threshold of 1e-4: no improvement
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.5);
    for (int epoch = 0; epoch < 5; ++epoch) {
        schedule.watch(3.0);
    }
    schedule.watch(1.0);  // in time
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.5);
    for (int epoch = 0; epoch < 6; ++epoch) {
        schedule.watch(1.5);
    }
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.25);
}

}  // namespace
}  // namespace joulemark::train
