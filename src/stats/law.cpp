// SPDX-License-Identifier: Apache-2.0
#include "stats/law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <boost/math/tools/toms748_solve.hpp>
#include <fmt/format.h>

#include "stats/distributions.h"
#include "stats/linear.h"
#include "stats/projection.h"

namespace joulemark::stats {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

const std::array<FormInfo, 6> form_table{{
    {Form::power, "power", "y = a x^b", {"a", "b"}, 3},
    {Form::amdahl, "amdahl", "y = a + b / x", {"a", "b"}, 3},
    {Form::exponential, "exponential", "y = a exp(b x)", {"a", "b"}, 3},
    {Form::linear, "linear", "y = a + b x", {"a", "b"}, 3},
    {Form::power_floor, "power_floor", "y = a x^b + c", {"a", "b", "c"}, 6},
    {Form::saturating, "saturating", "y = c + a exp(-x / k)", {"a", "k", "c"}, 6},
}};

bool has_bend(Form form) {
    return form == Form::power_floor || form == Form::saturating;
}

/// Linear forms in the sense of variable projection: y = slope phi(x; bend) + constant, where phi is written
/// so that it stays well conditioned: (u^b - 1) / b runs through b = 0, the exponential starts at 1.
struct Basis {
    Form form;
    double centre;  ///< geometric mean of x
    double start;   ///< least x

    double operator()(double x, double bend) const {
        switch (form) {
            case Form::amdahl:
                return 1 / x;
            case Form::linear:
                return x;
            case Form::saturating:
                return std::exp(-(x - start) / std::exp(bend));
            default: {
                const double log_u = std::log(x / centre);
                return std::abs(bend) < 1e-9 ? log_u : std::expm1(bend * log_u) / bend;
            }
        }
    }
};

/// The range in which the bend is sought: the exponent b, or the logarithm of the length k.
Interval bend_range(Form form, const VectorXd& x) {
    if (form == Form::power_floor) {
        return {-12, 12};
    }
    const double span = std::log(x.maxCoeff() - x.minCoeff());
    return {span - std::log(50), span + std::log(50)};
}

struct Data {
    VectorXd x, y, w;  ///< y are logarithms
};

struct Solution {
    std::vector<double> parameters;
    double rss = infinity;
    ProjectedMinimum bend = {};  ///< of forms that have one
};

struct Line {
    double slope = 0, constant = 0, rss = infinity;
};

double log_rss(const Data& data, const VectorXd& phi, double slope, double constant) {
    double sum = 0;
    for (Index i = 0; i < phi.size(); ++i) {
        const double value = slope * phi[i] + constant;
        if (!(value > 0)) {
            return infinity;
        }
        const double residual = data.y[i] - std::log(value);
        sum += data.w[i] * residual * residual;
    }
    return sum;
}

struct Step {
    double slope, constant;
};

/// Weighted least squares of r on the columns p and q by Gram-Schmidt, without allocating: the innermost loop
/// of every search. Nothing when the columns are parallel.
std::optional<Step> on_two_columns(const VectorXd& p, const VectorXd& q, const VectorXd& r,
                                   const VectorXd& w) {
    const Index n = p.size();
    double qq = 0, qp = 0;
    for (Index i = 0; i < n; ++i) {
        qq += w[i] * q[i] * q[i];
        qp += w[i] * q[i] * p[i];
    }
    double rest_rest = 0, rest_r = 0, pp = 0;
    for (Index i = 0; i < n; ++i) {
        const double rest = p[i] - qp / qq * q[i];
        rest_rest += w[i] * rest * rest;
        rest_r += w[i] * rest * r[i];
        pp += w[i] * p[i] * p[i];
    }
    if (!(rest_rest > 1e-24 * pp)) {
        return std::nullopt;
    }
    const double slope = rest_r / rest_rest;
    double q_left = 0;
    for (Index i = 0; i < n; ++i) {
        q_left += w[i] * q[i] * (r[i] - slope * p[i]);
    }
    return Step{slope, q_left / qq};
}

/// Least squares of log y - log(slope phi + constant): Gauss-Newton from the fit of relative errors, with
/// halved steps wherever the value would not stay positive or the sum would grow.
Line fit_two(const Data& data, const VectorXd& phi) {
    VectorXd q = (-data.y).array().exp();
    VectorXd p = phi.cwiseProduct(q);
    VectorXd r = VectorXd::Ones(phi.size());
    Line line{0, std::exp(data.y.dot(data.w) / data.w.sum()), infinity};
    line.rss = log_rss(data, phi, line.slope, line.constant);
    if (const auto start = on_two_columns(p, q, r, data.w)) {
        const double rss = log_rss(data, phi, start->slope, start->constant);
        if (rss < line.rss) {
            line = {start->slope, start->constant, rss};
        }
    }
    for (int iteration = 0; iteration < 50; ++iteration) {
        q = (line.slope * phi.array() + line.constant).inverse();
        p = phi.cwiseProduct(q);
        r = data.y.array() + q.array().log();
        const auto step = on_two_columns(p, q, r, data.w);
        if (!step) {
            break;
        }
        const double before = line.rss;
        for (double factor = 1; factor > 1e-6; factor /= 2) {
            const double slope = line.slope + factor * step->slope;
            const double constant = line.constant + factor * step->constant;
            const double rss = log_rss(data, phi, slope, constant);
            if (rss < line.rss) {
                line = {slope, constant, rss};
                break;
            }
        }
        if (!(line.rss < before * (1 - 1e-12))) {
            break;
        }
    }
    return line;
}

/// A form with its bend as the only free parameter: the other two follow from it.
class Projection {
  public:
    Projection(Form form, const Data& data)
        : data_(data),
          basis_{form, std::exp(data.x.array().log().mean()), data.x.minCoeff()},
          range_(has_bend(form) ? bend_range(form, data.x) : Interval{}) {}

    const Interval& range() const { return range_; }

    Line line(double bend) const {
        VectorXd phi(data_.x.size());
        for (Index i = 0; i < phi.size(); ++i) {
            phi[i] = basis_(data_.x[i], bend);
        }
        return fit_two(data_, phi);
    }
    double rss(double bend) const { return line(bend).rss; }

    Solution solve() const {
        if (!has_bend(basis_.form)) {
            return solution({});
        }
        return solution(minimise_projected([this](double bend) { return rss(bend); }, range_));
    }

  private:
    Solution solution(const ProjectedMinimum& best) const {
        const double bend = best.at;
        const Line fit = line(bend);
        Solution solution{{}, fit.rss, best};
        switch (basis_.form) {
            case Form::amdahl:
                solution.parameters = {fit.constant, fit.slope};
                break;
            case Form::linear:
                solution.parameters = {fit.constant, fit.slope};
                break;
            case Form::saturating: {
                const double k = std::exp(bend);
                solution.parameters = {fit.slope * std::exp(basis_.start / k), k, fit.constant};
                break;
            }
            default: {
                const double amplitude = fit.slope / bend;
                solution.parameters = {amplitude * std::pow(basis_.centre, -bend), bend,
                                       fit.constant - amplitude};
            }
        }
        return solution;
    }

    const Data& data_;
    Basis basis_;
    Interval range_;
};

Solution solve(Form form, const Data& data) {
    if (form != Form::power && form != Form::exponential) {
        return Projection(form, data).solve();
    }
    Eigen::MatrixX2d design(data.x.size(), 2);
    design.col(0).setOnes();
    design.col(1) = form == Form::power ? VectorXd(data.x.array().log()) : data.x;
    const auto fit = fit_linear(design, data.y, data.w);
    if (!fit) {
        return {};
    }
    return {{std::exp(fit->coefficients[0]), fit->coefficients[1]}, fit->rss};
}

/// Amplitudes are positive by nature and estimated relatively: their interval is that of their logarithm.
bool is_amplitude(Form form, std::size_t parameter) {
    return parameter == 0 && form != Form::amdahl && form != Form::linear;
}

/// Derivatives of log y by the parameters, an amplitude's by its logarithm.
VectorXd log_gradient(Form form, std::span<const double> p, double x) {
    const double y = evaluate(form, p, x);
    switch (form) {
        case Form::power:
            return Eigen::Vector2d(1, std::log(x));
        case Form::exponential:
            return Eigen::Vector2d(1, x);
        case Form::amdahl:
            return Eigen::Vector2d(1 / y, 1 / (x * y));
        case Form::linear:
            return Eigen::Vector2d(1 / y, x / y);
        case Form::power_floor: {
            const double share = p[0] * std::pow(x, p[1]) / y;
            return Eigen::Vector3d(share, share * std::log(x), 1 / y);
        }
        default: {
            const double share = p[0] * std::exp(-x / p[1]) / y;
            return Eigen::Vector3d(share, share * x / (p[1] * p[1]), 1 / y);
        }
    }
}

Eigen::MatrixXd log_gradients(Form form, std::span<const double> parameters, const VectorXd& x) {
    Eigen::MatrixXd rows(x.size(), static_cast<Index>(parameters.size()));
    for (Index i = 0; i < x.size(); ++i) {
        rows.row(i) = log_gradient(form, parameters, x[i]);
    }
    return rows;
}

/// The between-configuration variance at which the weighted residuals have the size that they should have
/// (Paule and Mandel 1982); 0 when the scatter of repeats explains them all.
double between_variance(Form form, Data data, const LevelMeans& means) {
    const double df = static_cast<double>(data.x.size()) - static_cast<double>(info(form).parameters.size());
    if (means.balanced() || means.within_variance == 0 || df < 1) {
        return 0;
    }
    const auto excess = [&](double between) {
        data.w = (between + means.within_variance * means.repeats.cwiseInverse().array()).inverse();
        return solve(form, data).rss - df;
    };
    if (excess(0) <= 0) {
        return 0;
    }
    double high = means.within_variance;
    while (excess(high) > 0) {
        high *= 4;
    }
    std::uintmax_t iterations = 60;
    const auto root = boost::math::tools::toms748_solve(
        excess, 0.0, high, boost::math::tools::eps_tolerance<double>(20), iterations);
    return (root.first + root.second) / 2;
}

std::vector<Estimate> estimates(const LawFit& fit, const Solution& solution, const Data& data) {
    std::vector<Estimate> parameters;
    for (std::size_t i = 0; i < solution.parameters.size(); ++i) {
        Estimate estimate{solution.parameters[i], std::nullopt};
        const auto at = static_cast<Index>(i);
        if (fit.df > 0) {
            const double half = t95(fit.df) * std::sqrt(fit.variance * fit.unscaled(at, at));
            if (is_amplitude(fit.form, i)) {
                const auto [low, high] =
                    std::minmax({estimate.value * std::exp(-half), estimate.value * std::exp(half)});
                estimate.ci95 = Interval{low, high};
            } else {
                estimate.ci95 = Interval{estimate.value - half, estimate.value + half};
            }
        }
        parameters.push_back(estimate);
    }
    if (has_bend(fit.form) && fit.df > 0) {
        const Projection projection(fit.form, data);
        const double t = t95(fit.df);
        Interval bend = profile_interval([&](double at) { return projection.rss(at); }, solution.bend,
                                         projection.range(), t * t * fit.variance);
        if (fit.form == Form::saturating) {
            bend = {std::exp(bend.low), std::exp(bend.high)};
        }
        parameters[1].ci95 = bend;
    }
    return parameters;
}

std::optional<double> leave_one_out(Form form, const Data& data) {
    double squares = 0;
    for (Index out = 0; out < data.x.size(); ++out) {
        Data rest;
        for (const auto member : {&Data::x, &Data::y, &Data::w}) {
            VectorXd& kept = rest.*member;
            kept.resize(data.x.size() - 1);
            kept << (data.*member).head(out), (data.*member).tail(data.x.size() - 1 - out);
        }
        const Solution solution = solve(form, rest);
        const double predicted =
            solution.parameters.empty() ? 0 : evaluate(form, solution.parameters, data.x[out]);
        if (!(predicted > 0)) {
            return std::nullopt;
        }
        squares += std::pow(data.y[out] - std::log(predicted), 2);
    }
    return std::sqrt(squares / static_cast<double>(data.x.size()));
}

/// Whether log^2 x beside the law's own derivatives explains what they left (a RESET test, Ramsey 1969): no
/// form of ours has a bend of its own there, and independent departures have none either.
std::optional<double> curvature_p(const LawFit& fit, const Eigen::MatrixXd& gradients) {
    const Index n = gradients.rows(), p = gradients.cols();
    const double exact = 1e-24 * static_cast<double>(n);  // rounding: nothing is left to explain
    if (n < p + 2 || fit.rss <= exact) {
        return std::nullopt;
    }
    Eigen::MatrixXd design(n, p + 1);
    const VectorXd log_x = fit.x.array().log();
    design << gradients, (log_x.array() - log_x.mean()).square().matrix();
    const auto bent = fit_linear(design, fit.log_residuals, fit.weights);
    if (!bent) {
        return std::nullopt;
    }
    return f_upper(std::max(0.0, fit.rss - bent->rss) / (std::max(bent->rss, exact) / bent->df), 1, bent->df);
}

std::optional<double> corrected_aic(double rss, int n, int parameters) {
    const int k = parameters + 1;  // the variance is estimated too
    if (n - k - 1 <= 0) {
        return std::nullopt;
    }
    const double exact = 1e-30 * n;  // rounding: below it fits are equally perfect
    return n * std::log(std::max(rss, exact) / n) + 2 * k + 2.0 * k * (k + 1) / (n - k - 1);
}

std::optional<Failure> unusable(Form form, std::span<const Level> levels) {
    std::vector<double> distinct;
    for (const Level& level : levels) {
        const bool positive =
            std::ranges::all_of(level.values, [](double v) { return v > 0 && std::isfinite(v); });
        if (level.values.empty() || !positive || !(level.x > 0)) {
            return Failure{"no law: values and levels must be positive", ""};
        }
        distinct.push_back(level.x);
    }
    std::ranges::sort(distinct);
    const auto count = std::distance(distinct.begin(), std::ranges::unique(distinct).begin());
    if (count < info(form).min_levels) {
        return Failure{fmt::format("no law: {} level{}", count, count == 1 ? "" : "s"),
                       fmt::format("{} needs {} levels", info(form).id, info(form).min_levels)};
    }
    return std::nullopt;
}

}  // namespace

std::span<const FormInfo> forms() {
    return form_table;
}

const FormInfo& info(Form form) {
    return *std::ranges::find(form_table, form, &FormInfo::form);
}

std::optional<Form> form_named(std::string_view id) {
    const auto found = std::ranges::find(form_table, id, &FormInfo::id);
    return found == form_table.end() ? std::nullopt : std::optional(found->form);
}

double evaluate(Form form, std::span<const double> p, double x) {
    switch (form) {
        case Form::power:
            return p[0] * std::pow(x, p[1]);
        case Form::amdahl:
            return p[0] + p[1] / x;
        case Form::exponential:
            return p[0] * std::exp(p[1] * x);
        case Form::linear:
            return p[0] + p[1] * x;
        case Form::power_floor:
            return p[0] * std::pow(x, p[1]) + p[2];
        case Form::saturating:
            return p[2] + p[0] * std::exp(-x / p[1]);
    }
    return std::nan("");
}

Result<LawFit> fit_law(Form form, std::span<const Level> levels, Detail detail) {
    if (auto failure = unusable(form, levels)) {
        return *failure;
    }
    const LevelMeans means = level_means(levels);
    Data data{means.x, means.log_mean, VectorXd::Ones(means.size())};
    data.w = mean_weights(means, between_variance(form, data, means));
    const Solution solution = solve(form, data);
    if (solution.parameters.empty() || solution.bend.at_limit) {
        return Failure{fmt::format("no {} law: the levels do not determine its bend", info(form).id),
                       "measure levels where the response bends"};
    }

    if (form == Form::amdahl && std::ranges::any_of(solution.parameters, [](double part) { return part < 0; })) {
        return Failure{"no amdahl law: one of its parts would be negative", ""};
    }

    LawFit fit;
    fit.form = form;
    fit.levels = static_cast<int>(means.size());
    fit.df = fit.levels - static_cast<int>(solution.parameters.size());
    fit.rss = solution.rss;
    fit.variance = fit.df > 0 ? fit.rss / fit.df : std::nan("");
    fit.repeat_variance = means.within_excess();
    fit.repeat_df = means.within_df;
    fit.x = data.x;
    fit.weights = data.w;
    fit.log_residuals.resize(data.x.size());
    for (Index i = 0; i < data.x.size(); ++i) {
        fit.log_residuals[i] = data.y[i] - std::log(evaluate(form, solution.parameters, data.x[i]));
    }
    const double centre = data.w.dot(data.y) / data.w.sum();
    const double total = data.w.dot((data.y.array() - centre).square().matrix());
    fit.r2 = total > 0 ? 1 - fit.rss / total : 1;
    const Eigen::MatrixXd gradients = log_gradients(form, solution.parameters, data.x);
    const auto linear = fit_linear(gradients, data.y, data.w);
    if (!linear) {
        return Failure{fmt::format("no {} law: its parameters cannot be told apart", info(form).id),
                       "measure levels where the response bends"};
    }
    fit.unscaled = linear->unscaled;
    fit.leverage = linear->leverage;
    for (const double value : solution.parameters) {
        fit.parameters.push_back({value, std::nullopt});
    }
    fit.aicc = corrected_aic(fit.rss, fit.levels, static_cast<int>(solution.parameters.size()));
    if (detail == Detail::full) {
        fit.lack = lack_of_fit(means, fit.log_residuals, static_cast<int>(solution.parameters.size()));
        fit.lack.curvature_p = curvature_p(fit, gradients);
        fit.parameters = estimates(fit, solution, data);
        fit.loo_rmse = leave_one_out(form, data);
    }
    return fit;
}

std::vector<double> LawFit::parameter_values() const {
    std::vector<double> values;
    for (const Estimate& parameter : parameters) {
        values.push_back(parameter.value);
    }
    return values;
}

double LawFit::value(double at) const {
    return evaluate(form, parameter_values(), at);
}

Estimate LawFit::mean_at(double at) const {
    const auto values = parameter_values();
    Estimate estimate{evaluate(form, values, at), std::nullopt};
    if (df > 0) {
        const VectorXd gradient = log_gradient(form, values, at);
        const double half = t95(df) * std::sqrt(variance * gradient.dot(unscaled * gradient));
        estimate.ci95 = Interval{estimate.value * std::exp(-half), estimate.value * std::exp(half)};
    }
    return estimate;
}

std::optional<Interval> LawFit::prediction_at(double at) const {
    if (df <= 0) {
        return std::nullopt;
    }
    const auto values = parameter_values();
    const VectorXd gradient = log_gradient(form, values, at);
    // Two variances with degrees of freedom of their own (Satterthwaite 1946).
    const double about_law = variance * (gradient.dot(unscaled * gradient) + 1);
    const double total = about_law + repeat_variance;
    const double uncertainty =
        about_law * about_law / df + (repeat_df > 0 ? repeat_variance * repeat_variance / repeat_df : 0);
    const double half = uncertainty > 0 ? t95(total * total / uncertainty) * std::sqrt(total) : 0;
    const double value = evaluate(form, values, at);
    return Interval{value * std::exp(-half), value * std::exp(half)};
}

}  // namespace joulemark::stats
