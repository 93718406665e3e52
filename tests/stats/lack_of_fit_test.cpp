// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stats/distributions.h"
#include "stats/law.h"

namespace joulemark::stats {
namespace {

/// Repeats of a power law, of one that is bent by `bend` log^2 x, or whose levels depart by `between_sd`.
std::vector<Level> bent_power(int repeats, double noise, double bend, double between_sd, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<Level> levels;
    for (const double x : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
        const double log_u = std::log(x / 11.3);
        const double shared = between_sd * normal(random);
        Level level{x, {}};
        for (int repeat = 0; repeat < repeats; ++repeat) {
            level.values.push_back(100 * std::exp(-0.9 * log_u + bend * log_u * log_u + shared + noise * normal(random)));
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

// The textbook decomposition, by hand: squares of means about the line, times repeats, over those of repeats.
TEST(LackOfFit, IsTheFTestAgainstPureError) {
    const std::vector<Level> levels{{1, {100, 104}}, {2, {50, 51}}, {4, {22, 23}}, {8, {14, 13.5}}};
    const LawFit fit = *fit_law(Form::power, levels);
    double about_law = 0, pure = 0;
    for (Eigen::Index i = 0; i < 4; ++i) {
        const auto& values = levels[static_cast<std::size_t>(i)].values;
        about_law += 2 * fit.log_residuals[i] * fit.log_residuals[i];
        pure += std::pow(std::log(values[0] / values[1]), 2) / 2;
    }
    EXPECT_NEAR(*fit.lack.repeats_p, f_upper((about_law / 2) / (pure / 4), 2, 4), 1e-12);
    EXPECT_TRUE(fit.lack.significant());
    EXPECT_EQ(fit.lack.at, 4);
    EXPECT_NEAR(fit.lack.departure, fit.value(4) / std::sqrt(22.0 * 23) - 1, 1e-12);
}

TEST(LackOfFit, FindsABendAndSparesTheLawItself) {
    constexpr int studies = 500;
    for (const int repeats : {1, 4}) {
        int found = 0, false_alarms = 0, curvature_alarms = 0;
        for (std::uint64_t seed = 1; seed <= studies; ++seed) {
            found += fit_law(Form::power, bent_power(repeats, 0.03, 0.15, 0, seed))->lack.significant();
            false_alarms += fit_law(Form::power, bent_power(repeats, 0.03, 0, 0, seed))->lack.significant();
            curvature_alarms += *fit_law(Form::power, bent_power(repeats, 0.03, 0, 0.05, seed))->lack.curvature_p < 0.05;
        }
        EXPECT_GT(found, 0.95 * studies) << repeats;
        EXPECT_LT(false_alarms, 0.12 * studies) << repeats;     // two tests at 5 %
        EXPECT_LT(curvature_alarms, 0.07 * studies) << repeats;  // departures without a shape are no bend
    }
}

TEST(LackOfFit, BearsWhatAnIdealisationMayMiss) {
    // Repeats agree within 0.1 %: a departure of 1 % is certain, and small.
    const LawFit fit = *fit_law(Form::power, bent_power(5, 0.001, 0.005, 0, 1));
    EXPECT_LT(*fit.lack.repeats_p, 1e-6);
    EXPECT_LT(std::abs(fit.lack.departure), 0.02);
    EXPECT_FALSE(fit.lack.significant());
}

TEST(Law, AmdahlHasNoNegativePart) {
    const std::vector<Level> superlinear{{1, {100}}, {2, {45}}, {4, {20}}, {8, {8}}};
    EXPECT_NE(fit_law(Form::amdahl, superlinear).failure().reason.find("would be negative"), std::string::npos);
    const std::vector<Level> rising{{1, {10}}, {2, {15}}, {4, {17}}, {8, {18}}};
    EXPECT_FALSE(fit_law(Form::amdahl, rising));
}

}  // namespace
}  // namespace joulemark::stats
