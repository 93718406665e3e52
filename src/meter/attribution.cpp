// SPDX-License-Identifier: Apache-2.0
#include "meter/attribution.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <fmt/format.h>

#include "core/units.h"
#include "meter/attribution_model.h"
#include "stats/distributions.h"

namespace joulemark::meter {
namespace {

using namespace attribution;
using Eigen::Index;
using Eigen::VectorXd;

/// With more activities than this, regions overlap at random and there is nothing to pool.
constexpr std::size_t most_activities = 32;
/// With fewer repeats their scatter says nothing: a bound follows from the edges then.
constexpr std::size_t repeats_for_scatter = 5;

/// Part of each increment that falls into regions of a kind, by a model of the powers.
VectorXd shares(const Timeline& timeline, const Eigen::MatrixXd& design, const VectorXd& power, int kind) {
    VectorXd inside = VectorXd::Zero(design.rows());
    for (Index activity = 0; activity < design.cols(); ++activity) {
        if (timeline.contains(static_cast<int>(activity), kind)) {
            inside += design.col(activity) * power(activity);
        }
    }
    return inside.cwiseQuotient((design * power).cwiseMax(1e-12));
}

/// What keeps increments off the model, by the method of moments. Errors of a refresh's instant give to one
/// increment what they take from the next; a stretch of time that draws more or less than its kind does so in
/// all the increments that it spans. Squares and products of neighbouring residuals tell the two apart.
struct Noise {
    double instant_s2 = 0;       ///< variance of a refresh's instant
    double relative_power2 = 0;  ///< variance of a stretch's power, relative to its kind's
};

/// Seconds of the increments that a segment takes part in: consecutive ones but for gaps.
using Parts = std::vector<std::vector<Exposure>>;

class ErrorModel {
  public:
    ErrorModel(const Timeline& timeline, std::span<const Increment> increments, const Fit& fit,
               const VectorXd& energy)
        : timeline_(timeline),
          increments_(increments),
          fit_(fit),
          energy_(energy),
          parts_(timeline.segments.size()) {
        for (const Exposure& exposure : fit.seen.exposures) {
            parts_[static_cast<std::size_t>(exposure.segment)].push_back(exposure);
        }
        all_.resize(fit.seen.design.rows(), fit.seen.design.cols() + fit.slopes.cols());
        all_ << fit.seen.design, fit.slopes;
        normal_.compute(all_.transpose() * all_);
        find_noise();
    }

    /// Standard error of the energy of all regions of a kind: what either noise does to it, through the
    /// shares of the increments and through the fitted powers, lag and window.
    double standard_error(int kind) const {
        const Eigen::MatrixXd& design = fit_.seen.design;
        const VectorXd share = shares(timeline_, design, fit_.power_w, kind);
        const VectorXd ratio = energy_.cwiseQuotient((design * fit_.power_w).cwiseMax(1e-12));
        const Index activities = design.cols();
        VectorXd gradient(all_.cols());  // of the kind's energy
        for (Index activity = 0; activity < activities; ++activity) {
            const double inside = timeline_.contains(static_cast<int>(activity), kind) ? 1 : 0;
            gradient(activity) =
                ((inside - share.array()) * design.col(activity).array() * ratio.array()).sum();
        }
        for (std::size_t i = 0; i < fit_.fitted.size(); ++i) {
            const auto total = [&](double by) {
                Optics moved = fit_.optics;
                moved.*fit_.fitted[i] += by;
                return shares(timeline_, view(timeline_, increments_, moved).design, fit_.power_w, kind)
                    .dot(energy_);
            };
            gradient(activities + static_cast<Index>(i)) =
                (total(optics_step) - total(-optics_step)) / (2 * optics_step);
        }
        const VectorXd influence = share + all_ * normal_.solve(gradient);
        double variance = 0;
        for (Index k = 0; k < influence.size(); ++k) {
            const double next = continues(k) ? influence(k + 1) : 0;
            const double before = k > 0 && continues(k - 1) ? 0 : influence(k);  // else counted with k - 1
            variance +=
                noise_.instant_s2 *
                (std::pow(power_at(increments_[static_cast<std::size_t>(k)].to_s) * (influence(k) - next),
                          2) +
                 std::pow(power_at(increments_[static_cast<std::size_t>(k)].from_s) * before, 2));
        }
        for (std::size_t segment = 0; segment < parts_.size(); ++segment) {
            const int activity = timeline_.segments[segment].activity;
            const double inside = timeline_.contains(activity, kind) ? 1 : 0;
            double off_s = 0;
            for (const Exposure& part : parts_[segment]) {
                off_s += (influence(part.increment) - inside) * part.seconds;
            }
            variance += noise_.relative_power2 * std::pow(fit_.power_w(activity) * off_s, 2);
        }
        return std::sqrt(variance);
    }

    /// Degrees of freedom of the noise.
    double df() const { return std::max(4.0, static_cast<double>(all_.rows() - all_.cols()) / 2); }

  private:
    /// Whether the next increment starts where this one ends.
    bool continues(Index k) const {
        const auto i = static_cast<std::size_t>(k);
        return i + 1 < increments_.size() && increments_[i + 1].from_s == increments_[i].to_s;
    }

    /// The power that the sensor sees at an instant.
    double power_at(double time_s) const {
        const double seen_s =
            time_s * (1 + fit_.optics.stretch) - fit_.optics.lag_s - fit_.optics.window_s / 2;
        const auto after = std::ranges::upper_bound(timeline_.segments, seen_s, {}, &Segment::start_s);
        return fit_.power_w((after == timeline_.segments.begin() ? after : std::prev(after))->activity);
    }

    void find_noise() {
        const VectorXd& residual = fit_.residual_j;
        const Index m = residual.size();
        // Expected square of each residual, and product with the next, per unit of either variance.
        VectorXd own_power = VectorXd::Zero(m), shared_power = VectorXd::Zero(m);
        for (std::size_t segment = 0; segment < parts_.size(); ++segment) {
            const double power = fit_.power_w(timeline_.segments[segment].activity);
            for (std::size_t i = 0; i < parts_[segment].size(); ++i) {
                const Exposure& part = parts_[segment][i];
                own_power(part.increment) += std::pow(power * part.seconds, 2);
                if (i + 1 < parts_[segment].size() &&
                    parts_[segment][i + 1].increment == part.increment + 1) {
                    shared_power(part.increment) +=
                        power * power * part.seconds * parts_[segment][i + 1].seconds;
                }
            }
        }
        Eigen::Matrix2d left = Eigen::Matrix2d::Zero();
        Eigen::Vector2d right = Eigen::Vector2d::Zero();
        const auto moment = [&](double product, double instant, double power) {
            const Eigen::Vector2d row(instant, power);
            left += row * row.transpose();
            right += row * product;
        };
        for (Index k = 0; k < m; ++k) {
            const Increment& step = increments_[static_cast<std::size_t>(k)];
            const double to = std::pow(power_at(step.to_s), 2);
            moment(residual(k) * residual(k), to + std::pow(power_at(step.from_s), 2), own_power(k));
            if (continues(k)) {
                moment(residual(k) * residual(k + 1), -to, shared_power(k));
            }
        }
        Eigen::Vector2d variance = left.ldlt().solve(right);
        for (const int i : {0, 1}) {  // neither can be negative: then the other explains all
            if (variance(i) < 0) {
                variance(1 - i) = std::max(0.0, right(1 - i) / left(1 - i, 1 - i));
                variance(i) = 0;
            }
        }
        const double fitted = static_cast<double>(m) / static_cast<double>(m - all_.cols());
        noise_ = {variance(0) * fitted + std::pow(clock_error_s, 2), variance(1) * fitted};
    }

    const Timeline& timeline_;
    std::span<const Increment> increments_;
    const Fit& fit_;
    const VectorXd& energy_;
    Parts parts_;
    Eigen::MatrixXd all_;
    Eigen::LDLT<Eigen::MatrixXd> normal_;
    Noise noise_;
};

/// What half a refresh on each side could change, where nothing better is known.
double edge_bound(const Timeline& timeline, const Fit& fit, std::size_t region, double refresh_s) {
    const auto [first, last] = timeline.segments_of[region];
    const auto power = [&](int segment) {
        return fit.power_w(timeline.segments[static_cast<std::size_t>(segment)].activity);
    };
    return (std::abs(power(first) - power(first - 1)) + std::abs(power(last - 1) - power(last))) * refresh_s /
           2;
}

}  // namespace

Result<Attribution> attribute(std::span<const RegionSpan> regions, std::span<const Refresh> refreshes,
                              const SensorTiming& timing) {
    if (regions.empty() || refreshes.size() < 8) {
        return Failure{"too few refreshes of the counter were seen",
                       "meter for longer, or read the counter more often"};
    }
    const Timeline timeline = cut(regions, refreshes.front().earliest_ns, refreshes.back().latest_ns);
    if (timeline.activities.size() > most_activities) {
        return Failure{fmt::format("the regions overlap in {} different ways", timeline.activities.size()),
                       "mark fewer kinds of region at a time"};
    }
    Attribution result;
    const Increments seen = increments(refreshes, timeline.origin_ns, timing.refresh_s.value_or(0));
    const std::vector<Increment>& steps = seen.steps;
    if (steps.size() < 2 * timeline.activities.size() + 4) {
        return Failure{fmt::format("{} increments of the counter are too few to tell {} activities apart",
                                   steps.size(), timeline.activities.size()),
                       "repeat the regions"};
    }
    const Fit found = fit(timeline, seen, timing);
    if (!found.separable) {
        return Failure{"the regions always come in the same proportion between two refreshes",
                       "vary their duration, or leave time between them"};
    }
    result.refresh_s = seen.refresh_s * (1 + found.optics.stretch);
    result.lag_s = found.optics.lag_s;
    result.window_s = found.optics.window_s;
    result.calibrated = timing.lag_s && timing.window_s;
    for (std::size_t activity = 0; activity < timeline.activities.size(); ++activity) {
        if (timeline.activities[activity].empty()) {
            result.idle_power_w = found.power_w(static_cast<Index>(activity));
        }
    }

    // Each increment is split in proportion to what the model expects of its parts: inside a long region that
    // is all of it, so that the model matters at the edges only.
    VectorXd energy(static_cast<Index>(steps.size()));
    for (std::size_t k = 0; k < steps.size(); ++k) {
        energy(static_cast<Index>(k)) = steps[k].energy_j;
    }
    const VectorXd expected = (found.seen.design * found.power_w).cwiseMax(1e-12);
    std::vector<double> segment_j(timeline.segments.size()), segment_s(timeline.segments.size());
    for (const Exposure& part : found.seen.exposures) {
        const auto segment = static_cast<std::size_t>(part.segment);
        segment_j[segment] += energy(part.increment) / expected(part.increment) * part.seconds *
                              found.power_w(timeline.segments[segment].activity);
        segment_s[segment] += part.seconds;
    }

    const ErrorModel errors(timeline, steps, found, energy);
    struct Sum {
        std::size_t n = 0;
        double energy_j = 0, duration_s = 0, scatter = 0, standard_error = 0;
    };
    std::vector<Sum> sums(timeline.kinds.size());
    std::vector<double> region_j(regions.size());
    result.regions.resize(regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i) {
        double seen_s = 0;
        for (int segment = timeline.segments_of[i].first; segment < timeline.segments_of[i].second;
             ++segment) {
            region_j[i] += segment_j[static_cast<std::size_t>(segment)];
            seen_s += segment_s[static_cast<std::size_t>(segment)];
        }
        const double duration_s = seconds(regions[i].end_ns - regions[i].start_ns);
        if (duration_s > 0 && std::abs(seen_s - duration_s) < 1e-6 * duration_s + 1e-9) {
            result.regions[i].emplace();
            Sum& sum = sums[static_cast<std::size_t>(timeline.kind_of[i])];
            ++sum.n;
            sum.energy_j += region_j[i];
            sum.duration_s += duration_s;
        }
    }
    result.kinds = timeline.kinds;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (result.regions[i]) {
            Sum& sum = sums[static_cast<std::size_t>(timeline.kind_of[i])];
            const double duration_s = seconds(regions[i].end_ns - regions[i].start_ns);
            sum.scatter += std::pow(region_j[i] - sum.energy_j / sum.duration_s * duration_s, 2);
        }
    }
    for (std::size_t kind = 0; kind < sums.size(); ++kind) {
        Sum& sum = sums[kind];
        if (sum.n == 0) {
            continue;
        }
        const auto n = static_cast<double>(sum.n);
        sum.scatter = sum.n > 1 ? sum.scatter / (n - 1) : 0;
        sum.standard_error =
            errors.standard_error(static_cast<int>(kind)) / static_cast<double>(timeline.kinds[kind].n);
        RegionKind& told = result.kinds[kind];
        told.n = sum.n;
        told.mean_duration_s = sum.duration_s / n;
        told.mean = {sum.energy_j / n, stats::t95(errors.df()) * sum.standard_error};
    }
    std::erase_if(result.kinds, [](const RegionKind& kind) { return kind.mean.energy_j == 0; });
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (!result.regions[i]) {
            continue;
        }
        const Sum& sum = sums[static_cast<std::size_t>(timeline.kind_of[i])];
        const double error_j = std::sqrt(sum.scatter + std::pow(sum.standard_error, 2));
        const double bound_j =
            sum.n >= repeats_for_scatter
                ? stats::t95(static_cast<double>(sum.n) - 1) * error_j
                : edge_bound(timeline, found, i, result.refresh_s) + stats::t95(4) * sum.standard_error;
        result.regions[i] = AttributedEnergy{region_j[i], bound_j};
    }
    return result;
}

}  // namespace joulemark::meter
