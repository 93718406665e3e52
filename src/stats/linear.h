// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "stats/estimate.h"

namespace joulemark::stats {

/// A linear model y = X beta + error fitted by (weighted) least squares: n observations, p columns.
struct LinearFit {
    Eigen::VectorXd coefficients;     ///< p
    Eigen::VectorXd standard_errors;  ///< p; NaN without degrees of freedom
    Eigen::MatrixXd unscaled;         ///< p x p, (X' W X)^-1: times residual_variance it is the covariance
    Eigen::VectorXd residuals;        ///< n, y - X beta, unweighted
    Eigen::VectorXd leverage;         ///< n, diagonal of the hat matrix
    double rss = 0;                   ///< weighted residual sum of squares
    double residual_variance = 0;     ///< rss / df; NaN without degrees of freedom
    double r2 = 0;                    ///< about the weighted mean when X has a constant column, else about 0
    int n = 0, df = 0;

    /// Coefficient with its t interval.
    Estimate parameter(Eigen::Index column) const;
    /// x' beta with the t interval of the mean there; `x` has p entries.
    Estimate mean_at(const Eigen::VectorXd& x) const;
    /// The interval that holds one new observation of weight 1 at `x` with 95 % probability.
    std::optional<Interval> prediction_at(const Eigen::VectorXd& x) const;
};

/// Householder QR with column pivoting on scaled columns. Nothing when there are fewer rows than columns
/// or the columns depend on each other (numerically). `weights` are inverse relative variances, one per
/// row, positive; empty for equal ones.
std::optional<LinearFit> fit_linear(const Eigen::MatrixXd& design, const Eigen::VectorXd& y,
                                    const Eigen::VectorXd& weights = {});

/// y = coefficients[0] + coefficients[1] x.
std::optional<LinearFit> fit_line(std::span<const double> x, std::span<const double> y,
                                  std::span<const double> weights = {});

/// Variance inflation of each column of `regressors` (without the constant column): 1 / (1 - R2) of that
/// column regressed on the others and a constant (Marquardt 1970). Infinite for a dependent column.
std::vector<double> variance_inflation(const Eigen::MatrixXd& regressors);

}  // namespace joulemark::stats
