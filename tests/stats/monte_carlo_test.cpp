// SPDX-License-Identifier: Apache-2.0
// 1,000 simulated studies whose repeats are correlated within their configuration: how often do 95 %
// intervals hold the truth when the form is known, and when it was selected from the same data?
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stats/selection.h"
#include "stats/summary.h"

namespace joulemark::stats {
namespace {

constexpr int simulated_studies = 1000;
constexpr Form candidates[] = {Form::power, Form::amdahl, Form::exponential, Form::power_floor};

struct Case {
    std::string name;
    Form form;
    std::vector<double> parameters, x;
    double between_sd, within_sd;
    double at;  ///< where the law's value is asked for: inside the measured levels, not one of them
};
void PrintTo(const Case& study, std::ostream* out) {
    *out << study.name;
}

std::vector<Level> simulate(const Case& study, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<Level> levels;
    for (const double x : study.x) {
        const double shared = study.between_sd * normal(random);
        Level level{x, {}};
        for (int repeat = 0; repeat < 5; ++repeat) {
            level.values.push_back(evaluate(study.form, study.parameters, x) *
                                   std::exp(shared + study.within_sd * normal(random)));
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

class MonteCarlo : public testing::TestWithParam<Case> {};

TEST_P(MonteCarlo, CoverageGivenTheFormAndAfterSelection) {
    const Case& study = GetParam();
    const double exponent = study.parameters[1];
    const double value = evaluate(study.form, study.parameters, study.at);
    int parameter_hits = 0, value_hits = 0, selected_hits = 0, right_form = 0;
    std::vector<double> parameter_widths, value_widths, selected_widths;
    for (std::uint64_t seed = 1; seed <= simulated_studies; ++seed) {
        const auto levels = simulate(study, seed);
        const Selection selection = select_law(candidates, levels);
        const auto known = std::ranges::find(selection.fits, study.form, &LawFit::form);
        ASSERT_NE(known, selection.fits.end()) << "seed " << seed;
        const Interval parameter = *known->parameters[1].ci95;
        parameter_hits += parameter.contains(exponent);
        parameter_widths.push_back(parameter.half_width() / std::abs(exponent));
        const Interval mean = *known->mean_at(study.at).ci95;
        value_hits += mean.contains(value);
        value_widths.push_back(mean.half_width() / value);
        const LawFit& selected = selection.fits[*selection.selected];
        const Interval after = *selected.mean_at(study.at).ci95;
        selected_hits += after.contains(value);
        selected_widths.push_back(after.half_width() / value);
        right_form += selected.form == study.form;
    }
    const auto share = [](int hits) { return hits / double{simulated_studies}; };
    std::printf(
        "%-22s given the form: exponent %.1f %% (median half-width %.2f %%), value %.1f %% (%.2f %%); after "
        "selection: value %.1f %% (%.2f %%), right form %.1f %%\n",
        study.name.c_str(), 100 * share(parameter_hits), 100 * median(parameter_widths),
        100 * share(value_hits), 100 * median(value_widths), 100 * share(selected_hits),
        100 * median(selected_widths), 100 * share(right_form));
    EXPECT_GE(share(parameter_hits), 0.93);
    EXPECT_LE(share(parameter_hits), 0.97);
    EXPECT_GE(share(value_hits), 0.93);
    EXPECT_LE(share(value_hits), 0.97);
    EXPECT_GE(share(selected_hits), 0.90);
}

INSTANTIATE_TEST_SUITE_P(
    Studies, MonteCarlo,
    testing::Values(
        Case{"power_6_levels", Form::power, {900, -0.92}, {2, 4, 8, 16, 32, 64}, 0.02, 0.01, 12},
        Case{"power_8_levels", Form::power, {900, -0.92}, {2, 4, 8, 16, 32, 64, 128, 256}, 0.02, 0.01, 12},
        Case{"floor_8_levels",
             Form::power_floor,
             {900, -0.92, 6},
             {2, 4, 8, 16, 32, 64, 128, 256},
             0.02,
             0.01,
             12},
        Case{"amdahl_6_levels", Form::amdahl, {20, 880}, {2, 4, 8, 16, 32, 64}, 0.02, 0.01, 12},
        Case{"power_caps", Form::power, {9000, -0.55}, {100, 125, 150, 175, 200, 225, 250}, 0.01, 0.01, 140}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace joulemark::stats
