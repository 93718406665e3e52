// SPDX-License-Identifier: Apache-2.0
#include "data/crop.h"

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(RandomResizedCrop, StaysInsideAndCoversTheAllowedAreasAndRatios) {
    double smallest = 1;
    double largest = 0;
    for (std::uint64_t sample = 0; sample < 4000; ++sample) {
        KeyedRandom random{7, 0, sample};
        const Box box = random_resized_crop(500, 375, random);
        ASSERT_GE(box.x, 0);
        ASSERT_GE(box.y, 0);
        ASSERT_LE(box.x + box.width, 500);
        ASSERT_LE(box.y + box.height, 375);
        // Sides are rounded to pixels, so a little over the limits.
        ASSERT_LT(box.width / box.height, 4.0 / 3.0 * 1.01);
        ASSERT_GT(box.width / box.height, 3.0 / 4.0 * 0.99);
        const double area = box.width * box.height / (500.0 * 375.0);
        smallest = std::min(smallest, area);
        largest = std::max(largest, area);
    }
    EXPECT_NEAR(smallest, 0.08, 0.01);
    EXPECT_GT(largest, 0.95);
}

TEST(RandomResizedCrop, FallsBackToTheCentreOfAnImageThatNoRatioFits) {
    KeyedRandom random{7};
    const Box box = random_resized_crop(1000, 10, random);
    EXPECT_EQ(box.height, 10);
    EXPECT_EQ(box.width, 13);
    EXPECT_EQ(box.x, 493);
    KeyedRandom again{7};
    const Box pixel = random_resized_crop(1, 1, again);
    EXPECT_EQ(pixel.width * pixel.height, 1);
}

TEST(CentreCrop, IsTheMiddleSquare) {
    const Box box = centre_crop(512, 256);
    EXPECT_DOUBLE_EQ(box.width, 224);
    EXPECT_DOUBLE_EQ(box.height, 224);
    EXPECT_DOUBLE_EQ(box.x, 144);
    EXPECT_DOUBLE_EQ(box.y, 16);
}

TEST(KeyedRandom, DependsOnEveryPartOfTheKeyAndOnTheirOrder) {
    const auto first = [](std::initializer_list<std::uint64_t> key) { return KeyedRandom(key).bits(); };
    EXPECT_EQ(first({1, 2, 3}), first({1, 2, 3}));
    EXPECT_NE(first({1, 2, 3}), first({1, 3, 2}));
    EXPECT_NE(first({1, 2, 3}), first({0, 2, 3}));
    EXPECT_NE(first({1, 2, 3}), first({1, 2, 4}));
    EXPECT_NE(first({0, 0}), first({0}));
}

TEST(KeyedRandom, IsUniform) {
    KeyedRandom random{42};
    int counts[7] = {};
    double sum = 0;
    for (int i = 0; i < 70'000; ++i) {
        ++counts[random.below(7)];
        sum += random.uniform();
    }
    for (const int count : counts) {
        EXPECT_NEAR(count, 10'000, 400);  // over 4 standard deviations
    }
    EXPECT_NEAR(sum / 70'000, 0.5, 0.005);
}

}  // namespace
}  // namespace joulemark::train
