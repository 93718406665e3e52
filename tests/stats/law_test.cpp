// SPDX-License-Identifier: Apache-2.0
#include "stats/law.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stats/selection.h"

namespace joulemark::stats {
namespace {

std::vector<Level> exact_levels(Form form, std::vector<double> parameters, std::vector<double> x) {
    std::vector<Level> levels;
    for (const double at : x) {
        levels.push_back({at, {evaluate(form, parameters, at)}});
    }
    return levels;
}

struct Truth {
    Form form;
    std::vector<double> parameters, x;
};
void PrintTo(const Truth& truth, std::ostream* out) {
    *out << info(truth.form).id;
}

class ExactLaw : public testing::TestWithParam<Truth> {};

TEST_P(ExactLaw, IsRecoveredAndSelected) {
    const Truth& truth = GetParam();
    const auto levels = exact_levels(truth.form, truth.parameters, truth.x);
    const LawFit fit = *fit_law(truth.form, levels);
    for (std::size_t i = 0; i < truth.parameters.size(); ++i) {
        EXPECT_NEAR(fit.parameters[i].value, truth.parameters[i], 2e-5 * std::abs(truth.parameters[i]))
            << info(truth.form).parameters[i];
    }
    EXPECT_NEAR(fit.value(77), evaluate(truth.form, truth.parameters, 77), 1e-4 * fit.value(77));
    EXPECT_GT(fit.r2, 1 - 1e-9);
    std::vector<Form> all;
    for (const FormInfo& form : forms()) {
        all.push_back(form.form);
    }
    const Selection selection = select_law(all, levels);
    EXPECT_EQ(info(selection.fits[*selection.selected].form).id, info(truth.form).id);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ExactLaw,
    testing::Values(Truth{Form::power, {900, -0.93}, {2, 4, 8, 16, 32, 64}},
                    Truth{Form::power, {3e5, 1.4}, {100, 150, 200, 250}},
                    Truth{Form::amdahl, {12, 880}, {1, 2, 4, 8, 16, 32}},
                    Truth{Form::exponential, {500, -0.004}, {100, 150, 200, 250}},
                    Truth{Form::linear, {40, 3}, {1, 2, 5, 9, 20}},
                    Truth{Form::power_floor, {900, -1.1, 7}, {2, 4, 8, 16, 32, 64, 128}},
                    Truth{Form::power_floor, {1e9, -3.2, 3300}, {100, 125, 150, 175, 200, 225, 250}},
                    Truth{Form::power_floor, {2, 0.7, 5}, {1, 2, 4, 8, 16, 32, 64}},
                    Truth{Form::saturating, {70000, 32, 3500}, {100, 125, 150, 175, 200, 225, 250}}),
    [](const auto& test) {
        return std::string(stats::info(test.param.form).id) + std::to_string(test.index);
    });

TEST(Law, TwoParametersNeedThreeLevelsAndThreeNeedSix) {
    const auto levels = exact_levels(Form::power, {10, -1}, {1, 2, 4, 8, 16, 32});
    const std::span all(levels);
    EXPECT_EQ(fit_law(Form::power, all.first(2)).failure().reason, "no law: 2 levels");
    EXPECT_TRUE(fit_law(Form::power, all.first(3)));
    EXPECT_EQ(fit_law(Form::power_floor, all.first(5)).failure().reason, "no law: 5 levels");
    // Many repeats of two levels are still two levels.
    const std::vector<Level> repeated{{1, {10, 10.1, 9.9}}, {1, {10.2}}, {2, {5, 5.1}}};
    EXPECT_EQ(fit_law(Form::power, repeated).failure().reason, "no law: 2 levels");
}

TEST(Law, RefusesWhatIsNotPositive) {
    const std::vector<Level> zero{{1, {3}}, {2, {0}}, {3, {1}}};
    EXPECT_FALSE(fit_law(Form::power, zero));
    const std::vector<Level> at_zero{{0, {3}}, {2, {2}}, {3, {1}}};
    EXPECT_FALSE(fit_law(Form::power, at_zero));
}

// The classical closed form of the regression of log y on log x, for one value per level.
TEST(Law, PowerIsTheRegressionOfLogarithms) {
    const std::vector<Level> levels{{2, {51}}, {4, {26.5}}, {8, {13.1}}, {16, {7}}};
    const LawFit fit = *fit_law(Form::power, levels);
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (const Level& level : levels) {
        const double x = std::log(level.x), y = std::log(level.values[0]);
        sx += x / 4, sy += y / 4, sxx += x * x, sxy += x * y;
    }
    const double slope = (sxy - 4 * sx * sy) / (sxx - 4 * sx * sx);
    EXPECT_NEAR(fit.parameters[1].value, slope, 1e-12);
    EXPECT_NEAR(fit.parameters[0].value, std::exp(sy - slope * sx), 1e-10);
    double rss = 0;
    for (const Level& level : levels) {
        rss += std::pow(std::log(level.values[0]) - sy - slope * (std::log(level.x) - sx), 2);
    }
    EXPECT_NEAR(fit.variance, rss / 2, 1e-15);
    EXPECT_NEAR(fit.parameters[1].ci95->half_width(), 4.302652730 * std::sqrt(rss / 2 / (sxx - 4 * sx * sx)),
                1e-9);
}

TEST(Law, LeaveOneOutIsThePressStatistic) {
    const std::vector<Level> levels{{2, {51}}, {4, {26.5}}, {8, {13.1}}, {16, {7}}, {32, {3.4}}};
    const LawFit fit = *fit_law(Form::power, levels);
    double press = 0;  // of a linear model: residual / (1 - leverage)
    for (Eigen::Index i = 0; i < 5; ++i) {
        press += std::pow(fit.log_residuals[i] / (1 - fit.leverage[i]), 2);
    }
    EXPECT_NEAR(*fit.loo_rmse, std::sqrt(press / 5), 1e-12);
}

TEST(Law, AiccIsAbsentWhereItsCorrectionIsUndefined) {
    const auto levels = exact_levels(Form::linear, {10, 1}, {1, 2, 4, 8, 16});
    const std::span all(levels);
    EXPECT_FALSE(fit_law(Form::power, all.first(4))->aicc);
    const LawFit five = *fit_law(Form::power, all);
    EXPECT_NEAR(*five.aicc, 5 * std::log(five.rss / 5) + 6 + 24, 1e-9);
}

TEST(Law, UnequalRepeatsCountByWhatTheyTell) {
    // Between-configuration scatter dwarfs that of repeats: five repeats of one level tell as much as one.
    std::vector<Level> levels{{1, {100, 100.1, 99.9, 100, 100}}, {2, {56}}, {4, {24}}, {8, {13, 13.01}}};
    LawFit fit = *fit_law(Form::power, levels);
    EXPECT_LT(fit.weights.maxCoeff() / fit.weights.minCoeff(), 1.05);
    // No between-configuration scatter: the mean of five weighs five times as much.
    levels = {{1, {100, 110, 90, 105, 95}}, {2, {50}}, {4, {25}}, {8, {12, 13}}};
    fit = *fit_law(Form::power, levels);
    EXPECT_NEAR(fit.weights[0] / fit.weights[1], 5, 1e-6);
}

TEST(Law, SayWhenTheBendIsNotDetermined) {
    const auto line = exact_levels(Form::linear, {900, -2}, {100, 125, 150, 175, 200, 225, 250});
    const auto fit = fit_law(Form::saturating, line);  // no bend: k runs to its limit
    ASSERT_FALSE(fit);
    EXPECT_NE(fit.failure().reason.find("do not determine its bend"), std::string::npos);
}

// Zeus (NSDI 2023), one V100, ResNet-50, batch 256: epoch time [s] against power limit [W].
TEST(Selection, PowerLawOfV100EpochTimeBends) {
    const std::vector<Level> levels{{100, {6781.17333}}, {125, {5064.97}},    {150, {4148.66}},
                                    {175, {3852.18}},    {200, {3700.97333}}, {225, {3584.30333}},
                                    {250, {3514.98667}}};
    const Form candidates[] = {Form::power, Form::amdahl, Form::power_floor, Form::saturating};
    const Selection selection = select_law(candidates, levels);
    const LawFit& power = selection.fits[0];
    const LawFit& best = selection.fits[*selection.selected];
    EXPECT_EQ(best.form, Form::saturating);
    EXPECT_NEAR(power.r2, 0.89, 0.005);
    EXPECT_LT(*best.aicc, *power.aicc);
    EXPECT_LT(*best.loo_rmse, *power.loo_rmse / 3);
}

}  // namespace
}  // namespace joulemark::stats
