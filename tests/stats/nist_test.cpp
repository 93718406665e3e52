// SPDX-License-Identifier: Apache-2.0
// Certified values of the NIST Statistical Reference Datasets (https://www.itl.nist.gov/div898/strd/).
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "stats/distributions.h"
#include "stats/linear.h"
#include "stats/projection.h"

namespace joulemark::stats {
namespace {

using Eigen::VectorXd;

void expect_digits(double value, double certified, double relative) {
    EXPECT_NEAR(value, certified, std::abs(certified) * relative);
}

TEST(Nist, NorrisLine) {
    const std::vector<double> y{0.1,   338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1,
                                778.9, 559.2, 0.3,   0.1,   778.1, 668.8, 339.3, 448.9, 10.8,
                                557.7, 228.3, 998.0, 888.8, 119.6, 0.3,   0.6,   557.6, 339.3,
                                888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};
    const std::vector<double> x{0.2,   337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6,
                                777.0, 558.2, 0.4,   0.6,   775.5, 666.9, 338.0, 447.5, 11.6,
                                556.0, 228.1, 995.8, 887.6, 120.2, 0.3,   0.3,   556.8, 339.1,
                                887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
    const auto fit = fit_line(x, y).value();
    expect_digits(fit.coefficients[0], -0.262323073774029, 1e-11);
    expect_digits(fit.coefficients[1], 1.00211681802045, 1e-13);
    expect_digits(fit.standard_errors[0], 0.232818234301152, 1e-12);
    expect_digits(fit.standard_errors[1], 0.429796848199937e-03, 1e-12);
    expect_digits(std::sqrt(fit.residual_variance), 0.884796396144373, 1e-12);
    expect_digits(fit.r2, 0.999993745883712, 1e-13);
}

TEST(Nist, LongleyIllConditionedRegression) {
    Eigen::MatrixXd data(16, 7);
    data << 60323, 83, 234289, 2356, 1590, 107608, 1947, 61122, 88.5, 259426, 2325, 1456, 108632, 1948, 60171,
        88.2, 258054, 3682, 1616, 109773, 1949, 61187, 89.5, 284599, 3351, 1650, 110929, 1950, 63221, 96.2,
        328975, 2099, 3099, 112075, 1951, 63639, 98.1, 346999, 1932, 3594, 113270, 1952, 64989, 99, 365385,
        1870, 3547, 115094, 1953, 63761, 100, 363112, 3578, 3350, 116219, 1954, 66019, 101.2, 397469, 2904,
        3048, 117388, 1955, 67857, 104.6, 419180, 2822, 2857, 118734, 1956, 68169, 108.4, 442769, 2936, 2798,
        120445, 1957, 66513, 110.8, 444546, 4681, 2637, 121950, 1958, 68655, 112.6, 482704, 3813, 2552,
        123366, 1959, 69564, 114.2, 502601, 3931, 2514, 125368, 1960, 69331, 115.7, 518173, 4806, 2572,
        127852, 1961, 70551, 116.9, 554894, 4007, 2827, 130081, 1962;
    const VectorXd y = data.col(0);
    data.col(0).setOnes();
    const auto fit = fit_linear(data, y).value();
    const double coefficients[] = {-3482258.63459582, 15.0618722713733,  -0.358191792925910e-01,
                                   -2.02022980381683, -1.03322686717359, -0.511041056535807e-01,
                                   1829.15146461355};
    const double errors[] = {890420.383607373,  84.9149257747669,  0.334910077722432e-01, 0.488399681651699,
                             0.214274163161675, 0.226073200069370, 455.478499142212};
    for (int i = 0; i < 7; ++i) {
        expect_digits(fit.coefficients[i], coefficients[i], 1e-8);
        expect_digits(fit.standard_errors[i], errors[i], 1e-8);
    }
    expect_digits(std::sqrt(fit.residual_variance), 304.854073561965, 1e-10);
    expect_digits(fit.r2, 0.995479004577296, 1e-12);
    // Its variance inflation factors are a textbook example of collinearity.
    const auto inflation = variance_inflation(data.rightCols(6));
    EXPECT_NEAR(inflation[0], 135.5324, 1e-3);
    EXPECT_NEAR(inflation[1], 1788.5135, 1e-2);
    EXPECT_NEAR(inflation[5], 758.9806, 1e-2);
}

/// y = amplitude * phi(x, bend): least squares over both by projection.
struct Projected {
    double amplitude, bend, rss;
    Interval bend_ci95;
};

Projected fit_projected(const VectorXd& x, const VectorXd& y,
                        const std::function<double(double, double)>& phi, const Interval& range) {
    const auto solve = [&](double bend) {
        return fit_linear(x.unaryExpr([&](double at) { return phi(at, bend); }), y);
    };
    const auto rss = [&](double bend) {
        const auto fit = solve(bend);
        return fit ? fit->rss : y.squaredNorm();
    };
    const ProjectedMinimum best = minimise_projected(rss, range);
    EXPECT_FALSE(best.at_limit);
    const double df = static_cast<double>(x.size()) - 2;
    const double t = t95(df);
    return {solve(best.at)->coefficients[0], best.at, best.rss,
            profile_interval(rss, best, range, t * t * best.rss / df)};
}

TEST(Nist, DanWoodPowerLaw) {
    const VectorXd y{{2.138, 3.421, 3.597, 4.340, 4.882, 5.660}};
    const VectorXd x{{1.309, 1.471, 1.490, 1.565, 1.611, 1.680}};
    const auto fit = fit_projected(x, y, [](double at, double b) { return std::pow(at, b); }, {-12, 12});
    expect_digits(fit.amplitude, 7.6886226176e-01, 1e-7);
    expect_digits(fit.bend, 3.8604055871, 1e-7);
    expect_digits(fit.rss, 4.3173084083e-03, 1e-9);
    expect_digits(fit.bend_ci95.half_width(), t95(4) * 5.1726610913e-02, 0.01);
}

const VectorXd misra_y{
    {10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78}};
const VectorXd misra_x{
    {77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0}};

TEST(Nist, Misra1aSaturation) {
    const auto fit =
        fit_projected(misra_x, misra_y,
                      [](double at, double log_b) { return -std::expm1(-std::exp(log_b) * at); }, {-12, -3});
    expect_digits(fit.amplitude, 2.3894212918e+02, 1e-7);
    expect_digits(std::exp(fit.bend), 5.5015643181e-04, 1e-7);
    expect_digits(fit.rss, 1.2455138894e-01, 1e-9);
    const double half = (std::exp(fit.bend_ci95.high) - std::exp(fit.bend_ci95.low)) / 2;
    expect_digits(half, t95(12) * 7.2668688436e-06, 0.01);
}

TEST(Nist, Misra1bSaturation) {
    const auto fit = fit_projected(
        misra_x, misra_y,
        [](double at, double log_b) { return 1 - std::pow(1 + std::exp(log_b) * at / 2, -2); }, {-12, -3});
    expect_digits(fit.amplitude, 3.3799746163e+02, 1e-7);
    expect_digits(std::exp(fit.bend), 3.9039091287e-04, 1e-7);
    expect_digits(fit.rss, 7.5464681533e-02, 1e-9);
}

}  // namespace
}  // namespace joulemark::stats
