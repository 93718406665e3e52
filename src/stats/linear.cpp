// SPDX-License-Identifier: Apache-2.0
#include "stats/linear.h"

#include <cmath>
#include <limits>

#include <Eigen/QR>

#include "stats/distributions.h"

namespace joulemark::stats {
namespace {

Estimate with_interval(double value, double standard_error, int df) {
    if (df < 1) {
        return {value, std::nullopt};
    }
    const double half = t95(df) * standard_error;
    return {value, Interval{value - half, value + half}};
}

bool has_constant_column(const Eigen::MatrixXd& design) {
    for (Eigen::Index column = 0; column < design.cols(); ++column) {
        if (design(0, column) != 0 && (design.col(column).array() == design(0, column)).all()) {
            return true;
        }
    }
    return false;
}

}  // namespace

Estimate LinearFit::parameter(Eigen::Index column) const {
    return with_interval(coefficients[column], standard_errors[column], df);
}

Estimate LinearFit::mean_at(const Eigen::VectorXd& x) const {
    return with_interval(x.dot(coefficients), std::sqrt(residual_variance * x.dot(unscaled * x)), df);
}

std::optional<Interval> LinearFit::prediction_at(const Eigen::VectorXd& x) const {
    const double variance = residual_variance * (1 + x.dot(unscaled * x));
    return with_interval(x.dot(coefficients), std::sqrt(variance), df).ci95;
}

std::optional<LinearFit> fit_linear(const Eigen::MatrixXd& design, const Eigen::VectorXd& y,
                                    const Eigen::VectorXd& weights) {
    const Eigen::Index n = design.rows();
    const Eigen::Index p = design.cols();
    if (n < p || p == 0) {
        return std::nullopt;
    }
    const Eigen::VectorXd w = weights.size() == 0 ? Eigen::VectorXd::Ones(n) : weights;
    const Eigen::VectorXd root = w.cwiseSqrt();
    Eigen::MatrixXd scaled = root.asDiagonal() * design;
    const Eigen::VectorXd norms = scaled.colwise().norm();
    if ((norms.array() == 0).any()) {
        return std::nullopt;
    }
    scaled *= norms.cwiseInverse().asDiagonal();
    Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(scaled);
    qr.setThreshold(1e-10);
    if (qr.rank() < p) {
        return std::nullopt;
    }

    LinearFit fit;
    fit.n = static_cast<int>(n);
    fit.df = static_cast<int>(n - p);
    fit.coefficients = qr.solve(root.cwiseProduct(y));
    // One step of iterative refinement recovers digits that an ill-conditioned design (Longley's) costs.
    fit.coefficients += qr.solve(root.cwiseProduct(y) - scaled * fit.coefficients);
    fit.coefficients = fit.coefficients.cwiseQuotient(norms);
    fit.residuals = y - design * fit.coefficients;
    fit.rss = w.dot(fit.residuals.cwiseAbs2());

    const Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(n, p);
    fit.leverage = q.rowwise().squaredNorm();
    const Eigen::MatrixXd r_inverse =
        qr.matrixQR().topRows(p).triangularView<Eigen::Upper>().solve(Eigen::MatrixXd::Identity(p, p));
    const Eigen::MatrixXd spread = norms.cwiseInverse().asDiagonal() * (qr.colsPermutation() * r_inverse);
    fit.unscaled = spread * spread.transpose();

    const double centre = has_constant_column(design) ? w.dot(y) / w.sum() : 0;
    const double total = w.dot((y.array() - centre).square().matrix());
    fit.r2 = total > 0 ? 1 - fit.rss / total : 1;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    fit.residual_variance = fit.df > 0 ? fit.rss / fit.df : nan;
    fit.standard_errors = (fit.residual_variance * fit.unscaled.diagonal()).cwiseSqrt();
    return fit;
}

std::optional<LinearFit> fit_line(std::span<const double> x, std::span<const double> y,
                                  std::span<const double> weights) {
    const auto n = static_cast<Eigen::Index>(x.size());
    Eigen::MatrixXd design(n, 2);
    design.col(0).setOnes();
    design.col(1) = Eigen::Map<const Eigen::VectorXd>(x.data(), n);
    const auto count = static_cast<Eigen::Index>(weights.size());
    return fit_linear(design, Eigen::Map<const Eigen::VectorXd>(y.data(), n),
                      Eigen::Map<const Eigen::VectorXd>(weights.data(), count));
}

std::vector<double> variance_inflation(const Eigen::MatrixXd& regressors) {
    const Eigen::Index p = regressors.cols();
    std::vector<double> inflation;
    for (Eigen::Index column = 0; column < p; ++column) {
        Eigen::MatrixXd others(regressors.rows(), p);
        others.col(0).setOnes();
        for (Eigen::Index from = 0, to = 1; from < p; ++from) {
            if (from != column) {
                others.col(to++) = regressors.col(from);
            }
        }
        // A basic solution is enough: the others may depend on each other without touching this column.
        const Eigen::VectorXd target = regressors.col(column);
        const Eigen::VectorXd rest = target - others * others.colPivHouseholderQr().solve(target);
        const double unexplained =
            rest.squaredNorm() / (target.array() - target.mean()).matrix().squaredNorm();
        inflation.push_back(unexplained > 1e-12 ? 1 / unexplained : infinity);
    }
    return inflation;
}

}  // namespace joulemark::stats
