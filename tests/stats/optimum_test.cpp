// SPDX-License-Identifier: Apache-2.0
#include "stats/optimum.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stats/diagnostics.h"

namespace joulemark::stats {
namespace {

constexpr Form time_forms[] = {Form::power, Form::amdahl, Form::power_floor, Form::saturating};
constexpr Form power_forms[] = {Form::power, Form::linear};

// Zeus (NSDI 2023), one V100, ResNet-50, batch 256: epoch time [s] and mean power [W] against power limit
// [W].
const std::vector<Level> v100_time{{100, {6781.17333}}, {125, {5064.97}},    {150, {4148.66}},
                                   {175, {3852.18}},    {200, {3700.97333}}, {225, {3584.30333}},
                                   {250, {3514.98667}}};
const std::vector<Level> v100_power{{100, {98.38241}},  {125, {121.96602}}, {150, {144.59477}},
                                    {175, {166.37218}}, {200, {184.94427}}, {225, {205.43830}},
                                    {250, {220.25030}}};

TEST(Optimum, V100NeedsLeastEnergyBetween140And160Watts) {
    const auto optimum = least_product(time_forms, v100_time, power_forms, v100_power).value();
    EXPECT_TRUE(optimum.interior);
    EXPECT_GT(optimum.at, 140);
    EXPECT_LT(optimum.at, 160);
    EXPECT_TRUE(optimum.ci95.contains(optimum.at));
    EXPECT_LT(optimum.ci95.half_width(), 30);
    EXPECT_GT(optimum.interior_share, 0.8);
    std::printf("least energy at %.1f W [%.1f, %.1f], %s x %s\n", optimum.at, optimum.ci95.low,
                optimum.ci95.high, info(optimum.first).id.data(), info(optimum.second).id.data());
}

TEST(Optimum, IsReproducible) {
    const auto one = least_product(time_forms, v100_time, power_forms, v100_power, 100, 7).value();
    const auto two = least_product(time_forms, v100_time, power_forms, v100_power, 100, 7).value();
    EXPECT_EQ(one.ci95.low, two.ci95.low);
    EXPECT_EQ(one.ci95.high, two.ci95.high);
}

TEST(Optimum, SaysWhenTheLeastLiesAtAnEnd) {
    std::vector<Level> time, power;
    for (const double x : {100.0, 125.0, 150.0, 175.0, 200.0}) {
        time.push_back({x, {1e5 * std::pow(x, -2)}});  // halving the cap quadruples the time
        power.push_back({x, {x}});
    }
    const auto optimum = least_product(time_forms, time, power_forms, power, 100).value();
    EXPECT_FALSE(optimum.interior);
    EXPECT_EQ(optimum.at, 200);
}

TEST(Optimum, IntervalHoldsTheInjectedOptimum) {
    // T = 3500 + 72000 exp(-x/32), P = 0.88 x: the least product solves 1 + (72000/3500) exp(-x/32)(1 - x/32)
    // = 0.
    const auto derivative = [](double x) { return 1 + 72000 / 3500.0 * std::exp(-x / 32) * (1 - x / 32); };
    double low = 100, high = 250;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (derivative(middle) < 0 ? low : high) = middle;
    }
    int hits = 0;
    constexpr int studies = 60;
    for (std::uint64_t seed = 1; seed <= studies; ++seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> noise(0, 0.01);
        std::vector<Level> time, power;
        for (double x = 100; x <= 250; x += 25) {
            time.push_back({x, {(3500 + 72000 * std::exp(-x / 32)) * std::exp(noise(random))}});
            power.push_back({x, {0.88 * x * std::exp(noise(random))}});
        }
        const auto optimum = least_product(time_forms, time, power_forms, power, 200, seed).value();
        hits += optimum.ci95.contains(low);
    }
    std::printf("injected optimum in %d of %d intervals\n", hits, studies);
    EXPECT_GE(hits, 53);  // a binomial of 0.95 has 53 or more of 60 in 98 % of cases
}

TEST(Diagnostics, AnOutlyingEndLevelIsInfluential) {
    std::vector<Level> levels;
    for (const double x : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
        levels.push_back({x, {100 * std::pow(x, -0.9) * (x == 64 ? 1.5 : 1) * (1 + 0.001 * std::sin(x))}});
    }
    const LawFit fit = *fit_law(Form::power, levels);
    EXPECT_EQ(influential_levels(fit), std::vector<double>{64});
    EXPECT_EQ(cooks_distance(fit).size(), 6u);
}

// Cook's distance is what it says: the shift of all fitted values when a level is left out.
TEST(Diagnostics, CooksDistanceEqualsItsDefinition) {
    const std::vector<Level> levels{{2, {51}}, {4, {26.5}}, {8, {13.1}}, {16, {7}}, {32, {3.4}}};
    const LawFit fit = *fit_law(Form::power, levels);
    std::vector<Level> rest(levels.begin() + 1, levels.end());
    const LawFit without = *fit_law(Form::power, rest);
    double shift = 0;
    for (const Level& level : levels) {
        shift += std::pow(std::log(fit.value(level.x) / without.value(level.x)), 2);
    }
    EXPECT_NEAR(cooks_distance(fit)[0], shift / (2 * fit.variance), 1e-9);
}

TEST(Diagnostics, ScatterThatGrowsWithTheLevelIsFound) {
    int found = 0, false_alarms = 0;
    constexpr int studies = 200;
    for (std::uint64_t seed = 1; seed <= studies; ++seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        std::vector<Level> growing, even;
        for (int i = 0; i < 24; ++i) {
            const double x = std::exp(0.2 * i);
            growing.push_back({x, {std::pow(x, -0.9) * std::exp(0.002 * x * normal(random))}});
            even.push_back({x, {std::pow(x, -0.9) * std::exp(0.02 * normal(random))}});
        }
        found += *heteroscedasticity_p(*fit_law(Form::power, growing)) < 0.05;
        false_alarms += *heteroscedasticity_p(*fit_law(Form::power, even)) < 0.05;
    }
    EXPECT_GT(found, 180);
    EXPECT_LT(false_alarms, 22);
}

}  // namespace
}  // namespace joulemark::stats
