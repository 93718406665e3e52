// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.h"

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(ScaledLr, FollowsTheGlobalBatch) {
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::linear, 8192), 3.2);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::linear, 256), 0.1);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::square_root, 1024), 0.2);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::none, 8192), 0.1);
}

TEST(DefaultWarmup, IsTheStudysShareOfTheRun) {
    EXPECT_DOUBLE_EQ(default_warmup_epochs(100), 5);
    EXPECT_DOUBLE_EQ(default_warmup_epochs(300), 5);
    EXPECT_DOUBLE_EQ(default_warmup_epochs(2), 0.1);
}

TEST(LrSchedule, WarmsUpLinearly) {
    const LrSchedule schedule(1.0, 4);
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.25);
    EXPECT_DOUBLE_EQ(schedule.lr(3), 1.0);
    EXPECT_DOUBLE_EQ(schedule.lr(1000), 1.0);
    EXPECT_DOUBLE_EQ(LrSchedule(1.0, 0).lr(0), 1.0);
}

TEST(LrSchedule, HalvesAfterMoreThanFiveEpochsWithoutImprovement) {
    LrSchedule schedule(1.0, 0);
    schedule.epoch_ended(2.0);
    for (int epoch = 0; epoch < 5; ++epoch) {
        schedule.epoch_ended(2.0);
        EXPECT_DOUBLE_EQ(schedule.lr(0), 1.0) << epoch;
    }
    schedule.epoch_ended(1.9999);  // less than the threshold of 1e-4: no improvement
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.5);
    for (int epoch = 0; epoch < 5; ++epoch) {
        schedule.epoch_ended(3.0);
    }
    schedule.epoch_ended(1.0);  // in time
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.5);
    for (int epoch = 0; epoch < 6; ++epoch) {
        schedule.epoch_ended(1.5);
    }
    EXPECT_DOUBLE_EQ(schedule.lr(0), 0.25);
}

}  // namespace
}  // namespace joulemark::train
