// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <Eigen/Core>

#include "core/error.h"
#include "stats/estimate.h"
#include "stats/levels.h"

namespace joulemark::stats {

/// The families of laws of a positive response over one positive factor.
enum class Form { power, amdahl, exponential, linear, power_floor, saturating };

struct FormInfo {
    Form form;
    std::string_view id;
    std::string_view formula;
    std::vector<std::string_view> parameters;  ///< in the order of LawFit::parameters
    int min_levels;                            ///< below it there is no law of this form
};

/// Every form, two-parameter ones first.
std::span<const FormInfo> forms();
const FormInfo& info(Form form);
std::optional<Form> form_named(std::string_view id);

/// The form's value at x for parameters in the order of its FormInfo.
double evaluate(Form form, std::span<const double> parameters, double x);

/// How far a law is from the means that it was fitted to, and whether chance explains it (docs/methods.md,
/// "Lack of fit").
struct LackOfFit {
    std::optional<double> repeats_p;    ///< F test against the pure error of repeats; none without repeats
    std::optional<double> curvature_p;  ///< F test of a bend that is left in the residuals; none with few levels
    double departure = 0, at = 0;       ///< the largest, of the law from a mean (relative), and its level

    /// Too far from a mean, and not by chance: the form does not describe these levels.
    bool significant() const;
    /// "gives 4.3 % more than was measured at 250, which the scatter of repeats does not explain (p = 0.0002)".
    std::string text() const;
};

/// The largest departure of a curve with `parameters` fitted to `means`, from the residuals log mean - log
/// curve, and the F test against pure error (Fisher 1922; Draper and Smith 1998, section 2.1).
LackOfFit lack_of_fit(const LevelMeans& means, const Eigen::VectorXd& log_residuals, int parameters);

/// A law fitted to the means of configurations by least squares of logarithms, weighted where the numbers
/// of repeats differ (docs/methods.md, "Laws").
struct LawFit {
    Form form = Form::power;
    std::vector<Estimate> parameters;
    int levels = 0, df = 0;
    double rss = 0;       ///< weighted, of logarithms: squares of relative residuals
    double variance = 0;  ///< rss / df: of a configuration's mean about the law; NaN without df
    double repeat_variance =
        0;  ///< what one run scatters beyond that, from repeats; with its degrees of freedom
    int repeat_df = 0;
    double r2 = 0;                   ///< of logarithms
    LackOfFit lack;
    std::optional<double> aicc;      ///< absent when there are too few levels for the correction
    std::optional<double> loo_rmse;  ///< relative error at a level that the fit did not see
    Eigen::VectorXd x, log_residuals, leverage, weights;  ///< per level, sorted by x
    Eigen::MatrixXd unscaled;  ///< of the fit's own parameters; times variance it is their covariance

    double value(double at) const;
    /// The law at `at`, and where it lies with 95 % confidence.
    Estimate mean_at(double at) const;
    /// Where one new run at `at` lies with 95 % probability.
    std::optional<Interval> prediction_at(double at) const;
    std::vector<double> parameter_values() const;
};

/// How much of a fit is worked out: `point` leaves out parameter intervals and the leave-one-out error, which
/// cost most of the time and which resampling does not look at.
enum class Detail { full, point };

/// Fails with the reason: too few levels ("no law: 2 levels"), values that are not positive, or data that
/// do not determine the form's bend.
Result<LawFit> fit_law(Form form, std::span<const Level> levels, Detail detail = Detail::full);

}  // namespace joulemark::stats
