// SPDX-License-Identifier: Apache-2.0
#include "meter/attribution_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

#include "core/units.h"

namespace joulemark::meter::attribution {
namespace {

/// Repeats of a region last about as long as each other: where sorted durations of one name jump by more than
/// this factor, a new kind begins.
constexpr double like_duration = 1.5;
/// Beyond all edges and refreshes.
constexpr double beyond_s = 10;
/// Of the search by Gauss-Newton, which needs a handful.
constexpr int most_rounds = 40;

/// Integral, up to an instant, of a step at 0 seen through an averaging window.
double ramp(double t, double window) {
    return t <= 0 ? 0 : t < window ? t * t / (2 * window) : t - window / 2;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

void find_kinds(std::span<const RegionSpan> regions, Timeline& timeline) {
    std::map<std::string_view, std::vector<std::size_t>> by_name;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        by_name[regions[i].name].push_back(i);
    }
    timeline.kind_of.resize(regions.size());
    for (auto& [name, members] : by_name) {
        const auto duration = [&](std::size_t i) { return seconds(regions[i].end_ns - regions[i].start_ns); };
        std::ranges::sort(members, {}, duration);
        double last_s = -1;
        for (const std::size_t member : members) {
            if (last_s < 0 || duration(member) > like_duration * last_s) {
                timeline.kinds.push_back({.name = std::string(name)});
            }
            last_s = duration(member);
            timeline.kind_of[member] = static_cast<int>(timeline.kinds.size()) - 1;
            RegionKind& kind = timeline.kinds.back();
            ++kind.n;
            kind.mean_duration_s += (last_s - kind.mean_duration_s) / static_cast<double>(kind.n);
        }
    }
}

/// Refreshes at equal distances.
struct Grid {
    double period_s;
    std::vector<double> at_s;
};

/// A line through the bounds `at` +- `slack`: refresh k at phase + period * k. Where one exists it sharpens
/// the instants. Found by projecting to and fro between lines and bounds; nothing when it misses some of
/// them.
std::optional<Grid> grid_within(const std::vector<double>& at, const std::vector<double>& slack,
                                double period_s) {
    constexpr int rounds = 200;
    constexpr double tolerance_s = 2e-5;
    constexpr double tolerated_share = 0.01;
    const std::size_t n = at.size();
    if (n < 3 || period_s <= 0) {
        return std::nullopt;
    }
    std::vector<double> number(n);
    double mean_number = 0;
    for (std::size_t i = 1; i < n; ++i) {
        number[i] = number[i - 1] + std::round((at[i] - at[i - 1]) / period_s);
        mean_number += number[i] / static_cast<double>(n);
    }
    double spread = 0;
    for (const double k : number) {
        spread += (k - mean_number) * (k - mean_number);
    }
    if (spread <= 0) {
        return std::nullopt;
    }
    std::vector<double> within = at;
    for (int round = 0;; ++round) {
        double mean = 0, covariance = 0;
        for (std::size_t i = 0; i < n; ++i) {
            mean += within[i] / static_cast<double>(n);
            covariance += (number[i] - mean_number) * (within[i] - at.front());
        }
        const double period = covariance / spread;
        std::size_t outside = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double line = mean + period * (number[i] - mean_number);
            within[i] = std::clamp(line, at[i] - slack[i], at[i] + slack[i]);
            outside += std::abs(line - within[i]) > tolerance_s ? 1 : 0;
        }
        if (outside == 0 || round == rounds) {
            return static_cast<double>(outside) <= tolerated_share * static_cast<double>(n)
                       ? std::optional(Grid{period, within})
                       : std::nullopt;
        }
    }
}

struct Projection {
    double rss = std::numeric_limits<double>::infinity();
    Eigen::VectorXd power;
    Eigen::VectorXd residual;
};

/// Powers by least squares. Normal equations do: columns are times of the same size, and few.
Projection project(const Eigen::MatrixXd& design, const Eigen::VectorXd& energy) {
    Projection found;
    found.power = (design.transpose() * design).ldlt().solve(design.transpose() * energy);
    found.residual = energy - design * found.power;
    found.rss = found.residual.squaredNorm();
    if (!std::isfinite(found.rss)) {
        found.rss = std::numeric_limits<double>::infinity();
    }
    return found;
}

bool separable(const Eigen::MatrixXd& design) {
    const Eigen::MatrixXd unit = design.colwise().normalized();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(unit.transpose() * unit,
                                                                Eigen::EigenvaluesOnly);
    return design.colwise().norm().minCoeff() > 0 && solver.eigenvalues().minCoeff() > 1e-6;
}

}  // namespace

bool Timeline::contains(int activity, int kind) const {
    return std::ranges::binary_search(activities[static_cast<std::size_t>(activity)], kind);
}

Timeline cut(std::span<const RegionSpan> regions, std::int64_t first_ns, std::int64_t last_ns) {
    Timeline timeline;
    timeline.origin_ns = first_ns;
    find_kinds(regions, timeline);
    struct Edge {
        double time_s;
        int kind, change;
    };
    std::vector<Edge> edges;
    double start_s = 0, end_s = seconds(last_ns - first_ns);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        edges.push_back({seconds(regions[i].start_ns - first_ns), timeline.kind_of[i], 1});
        edges.push_back({seconds(regions[i].end_ns - first_ns), timeline.kind_of[i], -1});
        start_s = std::min(start_s, edges[edges.size() - 2].time_s);
        end_s = std::max(end_s, edges.back().time_s);
    }
    std::ranges::sort(edges, {}, &Edge::time_s);
    std::map<std::vector<int>, int> numbers;
    std::map<int, int> open;
    std::vector<int> key;
    double from_s = start_s - beyond_s;
    const auto close = [&](double to_s) {
        if (to_s <= from_s) {
            return;
        }
        key.clear();
        for (const auto& [kind, count] : open) {
            key.push_back(kind);
        }
        const auto [found, is_new] = numbers.try_emplace(key, static_cast<int>(numbers.size()));
        if (is_new) {
            timeline.activities.push_back(key);
        }
        timeline.segments.push_back({from_s, to_s, found->second});
        from_s = to_s;
    };
    for (const Edge& edge : edges) {
        close(edge.time_s);
        if ((open[edge.kind] += edge.change) == 0) {
            open.erase(edge.kind);
        }
    }
    close(end_s + beyond_s);
    for (const RegionSpan& region : regions) {
        const auto at = [&](std::int64_t time_ns) {
            const double time_s = seconds(time_ns - first_ns);
            return static_cast<int>(
                std::ranges::lower_bound(timeline.segments, time_s, {}, &Segment::start_s) -
                timeline.segments.begin());
        };
        timeline.segments_of.emplace_back(at(region.start_ns), at(region.end_ns));
    }
    return timeline;
}

Instants instants(std::span<const Refresh> refreshes, std::int64_t origin_ns, double known_refresh_s) {
    Instants found;
    double& refresh_s = found.refresh_s;
    refresh_s = known_refresh_s;
    const std::size_t n = refreshes.size();
    std::vector<double> slack(n), gaps;
    std::vector<double>& at = found.at_s;
    at.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double latest = seconds(refreshes[i].latest_ns - origin_ns);
        double earliest = seconds(refreshes[i].earliest_ns - origin_ns);
        if (refresh_s > 0) {
            earliest = std::max(earliest, latest - refresh_s);
        }
        at[i] = (earliest + latest) / 2;
        slack[i] = (latest - earliest) / 2;
        if (i > 0 && refreshes[i].continues) {
            gaps.push_back(at[i] - at[i - 1]);
        }
    }
    if (refresh_s <= 0 && !gaps.empty()) {
        refresh_s = median(gaps);
    }
    if (const auto line = grid_within(at, slack, refresh_s)) {
        refresh_s = line->period_s;
        at = line->at_s;
        found.on_grid = true;
    }
    return found;
}

Increments increments(std::span<const Refresh> refreshes, std::int64_t origin_ns, double known_refresh_s) {
    const Instants when = instants(refreshes, origin_ns, known_refresh_s);
    const std::vector<double>& at = when.at_s;
    Increments found{.steps = {}, .refresh_s = when.refresh_s, .on_grid = when.on_grid};
    for (std::size_t i = 1; i < at.size(); ++i) {
        if (refreshes[i].continues && at[i] > at[i - 1]) {
            found.steps.push_back({at[i - 1], at[i], refreshes[i].value - refreshes[i - 1].value});
        }
    }
    return found;
}

View view(const Timeline& timeline, std::span<const Increment> steps, const Optics& optics) {
    const auto& [lag_s, window_s, stretch] = optics;
    const std::vector<Segment>& segments = timeline.segments;
    View seen;
    seen.design = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(steps.size()),
                                        static_cast<Eigen::Index>(timeline.activities.size()));
    std::size_t first = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const double from = steps[k].from_s * (1 + stretch) - lag_s;
        const double to = steps[k].to_s * (1 + stretch) - lag_s;
        while (first + 1 < segments.size() && segments[first].end_s + window_s <= from) {
            ++first;
        }
        for (std::size_t i = first; i < segments.size() && segments[i].start_s < to; ++i) {
            const auto inside = [&, &segment = segments[i]](double time_s) {
                return ramp(time_s - segment.start_s, window_s) - ramp(time_s - segment.end_s, window_s);
            };
            if (const double spent = inside(to) - inside(from); spent > 0) {
                seen.exposures.push_back({static_cast<int>(k), static_cast<int>(i), spent});
                seen.design(static_cast<Eigen::Index>(k), segments[i].activity) += spent;
            }
        }
    }
    return seen;
}

Fit fit(const Timeline& timeline, const Increments& increments, const SensorTiming& timing) {
    const std::vector<Increment>& steps = increments.steps;
    const auto m = static_cast<Eigen::Index>(steps.size());
    Eigen::VectorXd energy(m);
    for (Eigen::Index k = 0; k < m; ++k) {
        energy(k) = steps[static_cast<std::size_t>(k)].energy_j;
    }
    const auto solve = [&](const Optics& optics) {
        return project(view(timeline, steps, optics).design, energy);
    };

    Fit found;
    Optics& optics = found.optics;
    Projection best;
    const auto try_out = [&](const Optics& tried) {
        Projection projection = solve(tried);
        const bool better = projection.rss < best.rss;
        if (better) {
            best = std::move(projection);
            optics = tried;
        }
        return better;
    };
    for (int quarter = -4; quarter <= 12; ++quarter) {
        for (const double share : {0.0, 0.25, 0.5, 1.0, 2.0}) {
            try_out({.lag_s = timing.lag_s.value_or(quarter * increments.refresh_s / 4),
                     .window_s = timing.window_s.value_or(share * increments.refresh_s)});
        }
    }

    const auto find_slopes = [&](const Eigen::VectorXd& power) {
        found.fitted.clear();
        if (!timing.lag_s) {
            found.fitted.push_back(&Optics::lag_s);
        }
        if (!timing.window_s && optics.window_s > 2 * optics_step) {
            found.fitted.push_back(&Optics::window_s);
        }
        if (increments.on_grid) {
            found.fitted.push_back(&Optics::stretch);
        }
        found.slopes.resize(m, static_cast<Eigen::Index>(found.fitted.size()));
        for (std::size_t i = 0; i < found.fitted.size(); ++i) {
            const auto expected = [&](double by) -> Eigen::VectorXd {
                Optics moved = optics;
                moved.*found.fitted[i] += by;
                return view(timeline, steps, moved).design * power;
            };
            found.slopes.col(static_cast<Eigen::Index>(i)) =
                (expected(optics_step) - expected(-optics_step)) / (2 * optics_step);
        }
    };
    for (int round = 0; round < most_rounds; ++round) {
        find_slopes(best.power);
        const Eigen::Index moving = found.slopes.cols();
        if (moving == 0) {
            break;
        }
        Eigen::MatrixXd all(m, moving + static_cast<Eigen::Index>(timeline.activities.size()));
        all << found.slopes, view(timeline, steps, optics).design;
        const Eigen::VectorXd step = (all.transpose() * all).ldlt().solve(all.transpose() * best.residual);
        const Optics from = optics;
        bool better = false;
        for (double part = 1; part > 1e-3 && !better; part /= 2) {
            Optics next = from;
            for (Eigen::Index i = 0; i < moving; ++i) {
                next.*found.fitted[static_cast<std::size_t>(i)] +=
                    part * std::clamp(step(i), -increments.refresh_s, increments.refresh_s);
            }
            next.window_s = std::max(next.window_s, 0.0);
            better = try_out(next);
        }
        if (!better || step.head(moving).cwiseAbs().maxCoeff() < 1e-9) {
            break;
        }
    }

    found.seen = view(timeline, steps, optics);
    found.separable = separable(found.seen.design);
    found.power_w = best.power.cwiseMax(1e-3);  // noise may make a power of nothing negative
    found.residual_j = best.residual;
    find_slopes(found.power_w);
    return found;
}

}  // namespace joulemark::meter::attribution
