// SPDX-License-Identifier: Apache-2.0
#include "stats/linear.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stats/distributions.h"

namespace joulemark::stats {
namespace {

TEST(LinearFit, WeightsAreRepeatedObservations) {
    const double x[] = {1, 2, 4};
    const double y[] = {2.1, 3.7, 8.2};
    const double weights[] = {1, 2, 1};
    const double x_repeated[] = {1, 2, 2, 4};
    const double y_repeated[] = {2.1, 3.7, 3.7, 8.2};
    const auto weighted = fit_line(x, y, weights).value();
    const auto repeated = fit_line(x_repeated, y_repeated).value();
    EXPECT_NEAR(weighted.coefficients[0], repeated.coefficients[0], 1e-12);
    EXPECT_NEAR(weighted.coefficients[1], repeated.coefficients[1], 1e-12);
    EXPECT_NEAR(weighted.rss, repeated.rss, 1e-12);
    EXPECT_EQ(weighted.df, 1);  // but they are three observations
}

TEST(LinearFit, RefusesWhatCannotBeSolved) {
    const double one[] = {1};
    EXPECT_FALSE(fit_line(one, one));
    const double same[] = {2, 2, 2};
    const double y[] = {1, 2, 3};
    EXPECT_FALSE(fit_line(same, y));
    const double two[] = {1, 2};
    const auto exact = fit_line(two, two).value();
    EXPECT_EQ(exact.df, 0);
    EXPECT_FALSE(exact.parameter(1).ci95);
}

TEST(LinearFit, IntervalsCoverAndPredictionsHoldNewObservations) {
    std::mt19937_64 random(11);
    std::normal_distribution<double> noise(0, 2);
    int slopes = 0, means = 0, predictions = 0;
    constexpr int rounds = 2000;
    const double x[] = {1, 2, 3, 5, 8, 13};
    for (int round = 0; round < rounds; ++round) {
        double y[6];
        for (int i = 0; i < 6; ++i) {
            y[i] = 4 + 3 * x[i] + noise(random);
        }
        const auto fit = fit_line(x, y).value();
        const Eigen::Vector2d at(1, 10);
        slopes += fit.parameter(1).ci95->contains(3);
        means += fit.mean_at(at).ci95->contains(34);
        predictions += fit.prediction_at(at)->contains(34 + noise(random));
    }
    // 0.95 +- 3 standard errors of a share of 2000.
    for (const int hits : {slopes, means, predictions}) {
        EXPECT_NEAR(hits / double{rounds}, 0.95, 0.0147);
    }
}

TEST(VarianceInflation, IsOneForOrthogonalAndInfiniteForDependentColumns) {
    Eigen::MatrixXd columns(4, 3);
    columns << -1, -1, -2, 1, -1, -2, -1, 1, 2, 1, 1, 2;
    const auto inflation = variance_inflation(columns);
    EXPECT_NEAR(inflation[0], 1, 1e-12);
    EXPECT_TRUE(std::isinf(inflation[1]));
    EXPECT_TRUE(std::isinf(inflation[2]));
}

TEST(VarianceInflation, OfTwoColumnsFollowsFromTheirCorrelation) {
    Eigen::MatrixXd columns(5, 2);
    columns << 1, 2.1, 2, 3.9, 3, 6.3, 4, 7.6, 5, 10.4;
    const Eigen::VectorXd a = columns.col(0).array() - columns.col(0).mean();
    const Eigen::VectorXd b = columns.col(1).array() - columns.col(1).mean();
    const double r = a.dot(b) / (a.norm() * b.norm());
    const auto inflation = variance_inflation(columns);
    EXPECT_NEAR(inflation[0] * (1 - r * r), 1, 1e-9);
    EXPECT_NEAR(inflation[1] * (1 - r * r), 1, 1e-9);
}

}  // namespace
}  // namespace joulemark::stats
