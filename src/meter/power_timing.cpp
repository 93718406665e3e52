// SPDX-License-Identifier: Apache-2.0
#include "meter/power_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <fmt/format.h>

#include "core/units.h"
#include "meter/attribution_model.h"
#include "stats/distributions.h"
#include "stats/summary.h"

namespace joulemark::meter {
namespace {

using namespace attribution;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Regions longer than this are no bursts, and readings are used up to this long after one.
constexpr double longest_burst_s = 5, margin_s = 1;
constexpr std::size_t least_refreshes = 20;
/// No sensor in use averages over longer.
constexpr double longest_window_s = 3;
constexpr double longest_lag_s = 0.6;
/// NVML tells power in milliwatts.
constexpr double resolution_w = 1e-3;
constexpr int most_rounds = 40;

/// New values near bursts, each between the last read without and the first read with it.
std::vector<Refresh> changes(std::span<const RegionSpan> regions, std::span<const PowerReading> readings) {
    std::vector<std::int64_t> starts, ends;
    for (const RegionSpan& region : regions) {
        if (seconds(region.end_ns - region.start_ns) <= longest_burst_s) {
            starts.push_back(region.start_ns);
            ends.push_back(region.end_ns + nanoseconds(margin_s));
        }
    }
    std::ranges::sort(starts);
    std::ranges::sort(ends);
    const auto begun = [](const std::vector<std::int64_t>& edges, std::int64_t time_ns) {
        return std::ranges::upper_bound(edges, time_ns) - edges.begin();
    };
    std::vector<Refresh> found;
    bool broken = true;
    for (std::size_t i = 1; i < readings.size(); ++i) {
        const auto& [time_ns, power_w, read_ns] = readings[i];
        if (begun(starts, time_ns) == begun(ends, time_ns)) {
            broken = true;
        } else if (power_w != readings[i - 1].power_w) {
            found.push_back({readings[i - 1].time_ns, time_ns + read_ns, power_w, !broken});
            broken = false;
        }
    }
    return found;
}

/// The longest time that most times between new values are multiples of: a refresh to the same value shows no
/// change, so neighbours are often several refreshes apart. Where refreshes are too uneven for one, the
/// median time, if most are like it. 0 when the readings are too sparse to tell.
double refresh_period(std::span<const Refresh> changes) {
    constexpr double share_of_gaps = 0.9;
    struct Gap {
        double least_s, most_s;
    };
    std::vector<Gap> gaps;
    for (std::size_t i = 1; i < changes.size(); ++i) {
        const Refresh &before = changes[i - 1], &after = changes[i];
        if (after.continues) {
            gaps.push_back({seconds(after.earliest_ns - before.latest_ns),
                            seconds(after.latest_ns - before.earliest_ns)});
        }
    }
    if (gaps.empty()) {
        return 0;
    }
    std::vector<double> widths, lengths;
    for (const Gap& gap : gaps) {
        widths.push_back(gap.most_s - gap.least_s);
        lengths.push_back((gap.most_s + gap.least_s) / 2);
    }
    const double shortest_s = 1.2 * stats::median(widths);
    const double longest_s = 1.1 * stats::quantile(lengths, 0.1) + shortest_s / 2;
    double best = 0, best_share = share_of_gaps;
    for (double period = longest_s; period > shortest_s; period *= 0.999) {
        const auto fits = std::ranges::count_if(gaps, [&](const Gap& gap) {
            return std::floor(gap.most_s / period) * period >= gap.least_s && gap.most_s >= period;
        });
        const double share = static_cast<double>(fits) / static_cast<double>(gaps.size());
        if (share > best_share) {
            best = period;
            best_share = share;
        } else if (best > 0 && period < 0.9 * best) {
            break;  // a part of it fits as well
        }
    }
    if (best <= 0) {
        const double typical_s = stats::median(lengths);
        const auto alike = std::ranges::count_if(
            lengths, [&](double length) { return std::abs(length - typical_s) < typical_s / 4; });
        best = typical_s > shortest_s && 2 * alike > std::ssize(lengths) ? typical_s : 0;
    }
    if (best <= 0) {
        return 0;
    }
    double total_s = 0, refreshes = 0;  // what fits leaves a range: its mean
    for (const double length : lengths) {
        total_s += length;
        refreshes += std::max(1.0, std::round(length / best));
    }
    return total_s / refreshes;
}

/// What a reading showed from some refresh on.
struct Shown {
    std::vector<double> at_s;
    std::vector<double> power_w;
};

/// All refreshes, those to the same value among them: evenly between the ones that show.
Shown fill(std::span<const Refresh> changes, const Instants& instants) {
    Shown shown;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].continues && i > 0) {
            const double from_s = instants.at_s[i - 1], gap_s = instants.at_s[i] - from_s;
            const double parts = std::round(gap_s / instants.refresh_s);
            for (double part = 1; part < parts; ++part) {
                shown.at_s.push_back(from_s + gap_s * part / parts);
                shown.power_w.push_back(changes[i - 1].value);
            }
        }
        shown.at_s.push_back(instants.at_s[i]);
        shown.power_w.push_back(changes[i].value);
    }
    return shown;
}

/// Share of each window that was spent in each activity: a row per refresh, summing to 1.
MatrixXd windows(const Timeline& timeline, const std::vector<double>& at_s, double lag_s, double window_s) {
    const std::vector<Segment>& segments = timeline.segments;
    MatrixXd design =
        MatrixXd::Zero(static_cast<Index>(at_s.size()), static_cast<Index>(timeline.activities.size()));
    for (std::size_t k = 0; k < at_s.size(); ++k) {
        const double to = at_s[k] - lag_s, from = to - window_s;
        auto segment = std::ranges::upper_bound(segments, from, {}, &Segment::end_s);
        if (window_s <= 0 && segment != segments.end()) {
            design(static_cast<Index>(k), segment->activity) = 1;
        }
        for (; window_s > 0 && segment != segments.end() && segment->start_s < to; ++segment) {
            const double inside_s = std::min(to, segment->end_s) - std::max(from, segment->start_s);
            design(static_cast<Index>(k), segment->activity) += inside_s / window_s;
        }
    }
    return design;
}

/// Lag and window by least squares, with the powers eliminated.
class WindowFit {
  public:
    WindowFit(const Timeline& timeline, const Shown& shown, double refresh_s)
        : timeline_(timeline),
          shown_(shown),
          refresh_s_(refresh_s),
          value_(Eigen::Map<const VectorXd>(shown.power_w.data(), std::ssize(shown.power_w))) {
        search();
        refine();
        bounds_ = has_window(best_) ? bounds_by_slopes() : centre();
    }

    double lag_s() const { return best_.lag_s; }
    double window_s() const { return best_.window_s; }
    const VectorXd& power_w() const { return best_.power; }
    double residual_w() const { return std::sqrt(best_.rss / static_cast<double>(value_.size())); }

    struct Bounds {
        double lag_s, window_s;
    };
    /// Half-widths of 95 % intervals.
    Bounds bounds() const { return bounds_; }

  private:
    struct Solution {
        double lag_s = 0, window_s = 0, rss = std::numeric_limits<double>::infinity();
        VectorXd power = {}, residual = {};
    };

    Solution solve(double lag_s, double window_s) const {
        const MatrixXd design = windows(timeline_, shown_.at_s, lag_s, window_s);
        Solution found{.lag_s = lag_s, .window_s = window_s};
        found.power = (design.transpose() * design).ldlt().solve(design.transpose() * value_);
        found.residual = value_ - design * found.power;
        const double rss = found.residual.squaredNorm();
        found.rss = std::isfinite(rss) ? rss : std::numeric_limits<double>::infinity();
        return found;
    }
    bool try_out(double lag_s, double window_s) {
        Solution tried = solve(lag_s, window_s);
        const bool better = tried.rss < best_.rss;
        if (better) {
            best_ = std::move(tried);
        }
        return better;
    }

    static bool has_window(const Solution& solution) { return solution.window_s > 2 * optics_step; }

    /// Over windows from none to long ones in steps of a factor, each with its end at steps of a quarter
    /// refresh or of a quarter of the window.
    void search() {
        for (double window_s = 0;
             window_s<longest_window_s; window_s = window_s> 0 ? 1.5 * window_s : refresh_s_ / 20) {
            const double step_s = std::max(refresh_s_, window_s) / 4;
            for (double lag_s = -refresh_s_; lag_s < longest_lag_s; lag_s += step_s) {
                try_out(lag_s, window_s);
            }
        }
    }

    /// Columns: slopes by lag and window, then the design.
    MatrixXd joint(const Solution& at) const {
        const auto expected = [&](double lag_by, double window_by) -> VectorXd {
            return windows(timeline_, shown_.at_s, at.lag_s + lag_by, at.window_s + window_by) * at.power;
        };
        MatrixXd all(value_.size(), 2 + at.power.size());
        all.col(0) = (expected(optics_step, 0) - expected(-optics_step, 0)) / (2 * optics_step);
        all.col(1) = (expected(0, optics_step) - expected(0, -optics_step)) / (2 * optics_step);
        all.rightCols(at.power.size()) = windows(timeline_, shown_.at_s, at.lag_s, at.window_s);
        return all;
    }

    void refine() {
        const double most_s = std::max(refresh_s_, 0.1);
        for (int round = 0; round < most_rounds && has_window(best_); ++round) {
            const Solution from = best_;
            const MatrixXd all = joint(from);
            const VectorXd step = (all.transpose() * all).ldlt().solve(all.transpose() * from.residual);
            const double lag_by = std::clamp(step(0), -most_s, most_s);
            const double window_by = std::clamp(step(1), -most_s, most_s);
            bool better = false;
            for (double part = 1; part > 1e-3 && !better; part /= 2) {
                better = try_out(from.lag_s + part * lag_by, std::max(0.0, from.window_s + part * window_by));
            }
            if (!better || std::max(std::abs(lag_by), std::abs(window_by)) < 1e-9) {
                break;
            }
        }
    }

    /// Of the noise of one refresh. One in the middle of a ramp tells of those after it, which share its
    /// errors: residuals that resemble their neighbours count for fewer.
    struct Noise {
        double variance, factor;
    };
    Noise noise(Index parameters) const {
        const Index m = value_.size();
        const double df = std::max(1.0, static_cast<double>(m - parameters));
        const double product = best_.residual.head(m - 1).dot(best_.residual.tail(m - 1));
        const double alike = std::clamp(product / std::max(best_.rss, 1e-12), 0.0, 0.95);
        const double fewer = (1 - alike) / (1 + alike);
        return {(best_.rss / df + resolution_w * resolution_w) / fewer,
                stats::t95(std::max(1.0, df * fewer))};
    }

    Bounds bounds_by_slopes() const {
        const MatrixXd all = joint(best_);
        const auto [variance, factor] = noise(all.cols());
        const MatrixXd inverse =
            (all.transpose() * all).ldlt().solve(MatrixXd::Identity(all.cols(), all.cols()));
        return {factor * std::sqrt(variance * inverse(0, 0)), factor * std::sqrt(variance * inverse(1, 1))};
    }

    /// Without a window there are no slopes, but a range of lags that the readings do not contradict: takes
    /// its middle. The bound of the window is the shortest that they contradict.
    Bounds centre() {
        const auto [variance, factor] = noise(1 + best_.power.size());
        const double limit = best_.rss + variance * factor * factor;
        const auto reach = [&](double lag_per_s, double window_per_s) {
            double by_s = optics_step;
            while (by_s < longest_lag_s &&
                   solve(best_.lag_s + lag_per_s * by_s, window_per_s * by_s).rss <= limit) {
                by_s *= 1.2;
            }
            return by_s;
        };
        const double later_s = reach(1, 0), earlier_s = reach(-1, 0);
        best_ = solve(best_.lag_s + (later_s - earlier_s) / 2, 0);
        return {(later_s + earlier_s) / 2, reach(-0.5, 1)};
    }

    const Timeline& timeline_;
    const Shown& shown_;
    double refresh_s_;
    VectorXd value_;
    Solution best_;
    Bounds bounds_ = {};
};

/// How far the whole grid of refreshes can be off: up to where it would leave the bounds of all but a few.
double grid_slack_s(const Instants& instants, std::span<const Refresh> changes, std::int64_t origin_ns) {
    std::vector<double> before, after;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        before.push_back(instants.at_s[i] - seconds(changes[i].earliest_ns - origin_ns));
        after.push_back(seconds(changes[i].latest_ns - origin_ns) - instants.at_s[i]);
    }
    constexpr double few = 0.02;
    return std::max({0.0, stats::quantile(before, few), stats::quantile(after, few)});
}

}  // namespace

Result<PowerTiming> power_timing(std::span<const RegionSpan> regions,
                                 std::span<const PowerReading> readings) {
    const auto bursts = std::ranges::count_if(regions, [](const RegionSpan& region) {
        return seconds(region.end_ns - region.start_ns) <= longest_burst_s;
    });
    if (bursts < least_bursts) {
        return Failure{fmt::format("{} bursts are too few", bursts),
                       fmt::format("the load has to mark at least {}", least_bursts)};
    }
    const std::vector<Refresh> seen = changes(regions, readings);
    if (seen.size() < least_refreshes) {
        return Failure{fmt::format("the reading changed {} times only", seen.size()),
                       "load the device in more bursts"};
    }
    const double period_s = refresh_period(seen);
    if (period_s <= 0) {
        return Failure{"no refresh of the reading can be told", "read it more often"};
    }
    const std::int64_t origin_ns = seen.front().earliest_ns;
    const Timeline timeline = cut(regions, origin_ns, seen.back().latest_ns);
    if (seen.size() < 2 * timeline.activities.size() + 4) {
        return Failure{fmt::format("{} new values are too few to tell {} activities apart", seen.size(),
                                   timeline.activities.size()),
                       "mark fewer kinds of region"};
    }
    const Instants when = instants(seen, origin_ns, period_s);
    const Shown shown = fill(seen, when);
    const WindowFit fit(timeline, shown, when.refresh_s);
    const auto [lag_bound_s, window_bound_s] = fit.bounds();
    PowerTiming found{.refresh_s = when.refresh_s,
                      .lag_s = fit.lag_s(),
                      .window_s = fit.window_s(),
                      .lag_bound_s = lag_bound_s + clock_error_s,
                      .window_bound_s = window_bound_s + 2 * clock_error_s,  // it has two ends
                      .low_w = fit.power_w().minCoeff(),
                      .high_w = fit.power_w().maxCoeff(),
                      .residual_w = fit.residual_w(),
                      .refreshes = seen.size()};
    if (when.on_grid) {
        found.lag_bound_s += grid_slack_s(when, seen, origin_ns);
    }
    const double contrast_w = found.high_w - found.low_w;
    if (contrast_w < least_contrast * found.high_w || contrast_w < 3 * found.residual_w) {
        return Failure{"the reading does not follow the bursts",
                       "load this device, and leave it idle between bursts"};
    }
    return found;
}

}  // namespace joulemark::meter
