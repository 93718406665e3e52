// SPDX-License-Identifier: Apache-2.0
#include "data/sharding.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace joulemark::train {
namespace {

TEST(Permutation, HoldsEveryIndexOnceAndChangesWithSeedAndEpoch) {
    auto order = permutation(1000, 1, 0);
    EXPECT_EQ(order, permutation(1000, 1, 0));
    EXPECT_NE(order, permutation(1000, 1, 1));
    EXPECT_NE(order, permutation(1000, 2, 0));
    std::ranges::sort(order);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(order[i], i);
    }
    EXPECT_TRUE(permutation(0, 1, 0).empty());
}

TEST(Shard, RanksCoverEveryStepWithoutOverlap) {
    const auto order = permutation(103, 5, 2);
    for (const int ranks : {1, 2, 5}) {
        std::set<std::uint32_t> seen;
        std::size_t taken = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            const Shard shard{rank, ranks, 4};
            for (std::int64_t step = 0; step < shard.steps(103); ++step) {
                const auto part = shard.part(order, step);
                seen.insert(part.begin(), part.end());
                taken += part.size();
            }
        }
        EXPECT_EQ(seen.size(), taken);
        EXPECT_EQ(taken, 103U / static_cast<unsigned>(4 * ranks) * static_cast<unsigned>(4 * ranks));
    }
}

TEST(Shard, AStepHoldsTheSameSamplesOnOneRankAndOnTwoWithHalfTheBatch) {
    const auto order = permutation(64, 5, 0);
    for (std::int64_t step = 0; step < 8; ++step) {
        const auto whole = Shard{0, 1, 8}.part(order, step);
        const auto first = Shard{0, 2, 4}.part(order, step);
        const auto second = Shard{1, 2, 4}.part(order, step);
        EXPECT_TRUE(std::ranges::equal(whole.first(4), first));
        EXPECT_TRUE(std::ranges::equal(whole.last(4), second));
    }
}

TEST(EvaluationPart, CoversEverySampleOnceEvenWhenRanksDoNotDivideThem) {
    for (const int ranks : {1, 2, 3, 7, 20}) {
        std::multiset<std::uint32_t> seen;
        for (int rank = 0; rank < ranks; ++rank) {
            const auto part = evaluation_part(17, rank, ranks);
            seen.insert(part.begin(), part.end());
        }
        ASSERT_EQ(seen.size(), 17U) << ranks;
        for (std::uint32_t i = 0; i < 17; ++i) {
            ASSERT_EQ(seen.count(i), 1U);
        }
    }
}

}  // namespace
}  // namespace joulemark::train
