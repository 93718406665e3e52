// SPDX-License-Identifier: Apache-2.0
// Do 95 % intervals hold the injected value in 95 % of studies? Seeds are pinned, so these cannot flicker.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stats/law.h"
#include "stats/summary.h"

namespace joulemark::stats {
namespace {

constexpr int coverage_studies = 200;

struct Design {
    std::string name;
    Form form;
    std::vector<double> parameters, x;
    std::vector<int> repeats;
    double within_sd;       ///< of the logarithm of one run
    double between_sd = 0;  ///< of the logarithm of what all runs of a configuration share
};
void PrintTo(const Design& design, std::ostream* out) {
    *out << design.name;
}

std::vector<Level> simulate(const Design& design, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<Level> levels;
    for (std::size_t i = 0; i < design.x.size(); ++i) {
        const double shared = design.between_sd * normal(random);
        const double value = evaluate(design.form, design.parameters, design.x[i]);
        Level level{design.x[i], {}};
        for (int repeat = 0; repeat < design.repeats[i % design.repeats.size()]; ++repeat) {
            level.values.push_back(value * std::exp(shared + design.within_sd * normal(random)));
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

class Coverage : public testing::TestWithParam<Design> {};

// Must hold: 182 to 198 of 200 (the 95 % range of a binomial is 184..196), median half-width at most 5 %.
TEST_P(Coverage, ExponentLiesInItsInterval) {
    const Design& design = GetParam();
    const double exponent = design.parameters[1];
    int hits = 0, predicted = 0;
    std::vector<double> half_widths;
    std::normal_distribution<double> normal;
    for (int seed = 1; seed <= coverage_studies; ++seed) {
        const LawFit fit = *fit_law(design.form, simulate(design, static_cast<std::uint64_t>(seed)));
        const Interval interval = *fit.parameters[1].ci95;
        hits += interval.contains(exponent);
        half_widths.push_back(interval.half_width() / std::abs(exponent));
        // One new run, on a configuration that the fit has not seen.
        std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1'000'000);
        const double at = std::sqrt(design.x[1] * design.x[2]);
        const double run = evaluate(design.form, design.parameters, at) *
                           std::exp(design.between_sd * normal(random) + design.within_sd * normal(random));
        predicted += fit.prediction_at(at)->contains(run);
    }
    const double width = median(half_widths);
    RecordProperty("hits", hits);
    RecordProperty("predicted", predicted);
    RecordProperty("median_half_width", std::to_string(width));
    std::printf("%s: exponent in %d of %d, new run in %d, median half-width %.2f %%\n", design.name.c_str(),
                hits, coverage_studies, predicted, 100 * width);
    EXPECT_GE(hits, 182);
    EXPECT_LE(hits, 198);
    EXPECT_GE(predicted, 182);
    EXPECT_LE(predicted, 199);
    if (design.between_sd == 0) {
        EXPECT_LE(width, 0.05);
    }
}

const std::vector<double> gpus{2, 4, 8, 16, 32, 64};
const std::vector<double> caps{100, 140, 180, 215, 250};
const std::vector<double> clocks{135, 450, 765, 1080, 1380};

INSTANTIATE_TEST_SUITE_P(
    Studies, Coverage,
    testing::Values(Design{"gpus", Form::power, {900, -0.92}, gpus, {5}, 0.01},
                    Design{"gpus_with_floor", Form::power_floor, {900, -0.92, 6}, gpus, {5}, 0.01},
                    Design{"cap", Form::power, {9000, -0.55}, caps, {5}, 0.01},
                    Design{"clock", Form::power, {9000, -0.7}, clocks, {5}, 0.01},
                    Design{"single_runs", Form::power, {900, -0.92}, gpus, {1}, 0.02},
                    Design{"unequal_repeats", Form::power, {900, -0.92}, gpus, {1, 5, 2, 3}, 0.02},
                    Design{"correlated_gpus", Form::power, {900, -0.92}, gpus, {5}, 0.01, 0.03},
                    Design{"correlated_caps", Form::power, {9000, -0.55}, caps, {5}, 0.01, 0.02},
                    Design{"correlated_unequal", Form::power, {900, -0.92}, gpus, {1, 5, 2, 3}, 0.01, 0.03},
                    Design{
                        "correlated_with_floor", Form::power_floor, {900, -0.92, 6}, gpus, {5}, 0.01, 0.01}),
    [](const auto& test) { return test.param.name; });

// Why repeats are not points: taking each as independent would claim three times the certainty there is.
TEST(Coverage, RepeatsAsIndependentPointsWouldUndercover) {
    const Design design{"", Form::power, {900, -0.92}, gpus, {5}, 0.005, 0.02};
    int hits = 0;
    for (int seed = 1; seed <= coverage_studies; ++seed) {
        std::vector<Level> points;
        for (const Level& level : simulate(design, static_cast<std::uint64_t>(seed))) {
            for (const double value : level.values) {
                points.push_back({level.x, {value}});
            }
        }
        hits += fit_law(Form::power, points)->parameters[1].ci95->contains(-0.92);
    }
    EXPECT_LT(hits, 160);
}

}  // namespace
}  // namespace joulemark::stats
