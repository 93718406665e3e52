// SPDX-License-Identifier: Apache-2.0
#include "stats/summary.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stats/distributions.h"

namespace joulemark::stats {
namespace {

TEST(Summary, OneValueHasNoInterval) {
    const double one[] = {3.5};
    const auto summary = summarise(one).value();
    EXPECT_EQ(summary.mean, 3.5);
    EXPECT_FALSE(summary.sd);
    EXPECT_FALSE(summary.ci95);
    EXPECT_FALSE(summarise({}));
}

TEST(Summary, IntervalIsStudentsT) {
    const double values[] = {9.8, 10.1, 10.4, 9.9, 10.3};
    const auto summary = summarise(values).value();
    EXPECT_DOUBLE_EQ(summary.mean, 10.1);
    EXPECT_NEAR(*summary.sd, std::sqrt(0.065), 1e-12);
    const double half = 2.7764451051977987 * std::sqrt(0.065 / 5);  // t(0.975, 4)
    EXPECT_NEAR(summary.ci95->low, 10.1 - half, 1e-9);
    EXPECT_NEAR(summary.ci95->high, 10.1 + half, 1e-9);
}

// NIST StRD, univariate, NumAcc4: 1001 values around 1e7 whose standard deviation is exactly 0.1.
TEST(Summary, KeepsDigitsOfValuesWithALargeCommonPart) {
    std::vector<double> values{10000000.2};
    for (int i = 0; i < 500; ++i) {
        values.push_back(10000000.1);
        values.push_back(10000000.3);
    }
    const auto summary = summarise(values).value();
    EXPECT_DOUBLE_EQ(summary.mean, 10000000.2);
    EXPECT_NEAR(*summary.sd, 0.1, 1e-8);
}

TEST(Summary, QuantilesInterpolate) {
    const double values[] = {4, 1, 3, 2};
    EXPECT_DOUBLE_EQ(median(values), 2.5);
    EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
    EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
    EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
    EXPECT_TRUE(std::isnan(median({})));
}

TEST(Distributions, MatchTables) {
    EXPECT_NEAR(t95(1), 12.706204736, 1e-8);
    EXPECT_NEAR(t95(10), 2.228138852, 1e-8);
    EXPECT_NEAR(t_two_sided(-2.228138852, 10), 0.05, 1e-9);
    EXPECT_NEAR(f_upper(4.964602744, 1, 10), 0.05, 1e-9);  // the square of t(0.975, 10)
    EXPECT_NEAR(chi_squared_upper(3.841458821, 1), 0.05, 1e-9);
}

}  // namespace
}  // namespace joulemark::stats
