// SPDX-License-Identifier: Apache-2.0
#include "meter/row_ring.h"

#include <thread>

#include <gtest/gtest.h>

namespace joulemark::meter {
namespace {

Row row(std::int64_t number) {
    Row row{};
    row.time_ns = number;
    row.values.back() = static_cast<double>(number);
    return row;
}

TEST(RowRing, RefusesARowWhenFullAndTakesItAfterADrain) {
    RowRing ring(4);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(ring.push(row(i)));
    }
    EXPECT_FALSE(ring.push(row(4)));
    std::int64_t next = 0;
    ring.drain([&](const Row& r) { EXPECT_EQ(r.time_ns, next++); });
    EXPECT_EQ(next, 4);
    EXPECT_TRUE(ring.push(row(4)));
    EXPECT_EQ(ring.size(), 1U);
}

TEST(RowRing, KeepsEveryRowWholeAndInOrderBetweenTwoThreads) {
    constexpr std::int64_t rows = 200'000;
    RowRing ring(64);
    std::jthread producer([&] {
        for (std::int64_t i = 0; i < rows; ++i) {
            while (!ring.push(row(i))) {
                std::this_thread::yield();
            }
        }
    });
    std::int64_t next = 0;
    while (next < rows) {
        ring.drain([&](const Row& r) {
            ASSERT_EQ(r.time_ns, next);
            ASSERT_EQ(r.values.back(), static_cast<double>(next));
            ++next;
        });
    }
}

}  // namespace
}  // namespace joulemark::meter
