// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "meter/attribution.h"

/// The linear model behind attribute(): increments of a counter on the time spent in each activity.
namespace joulemark::meter::attribution {

/// No edge and no refresh is known better than this, however well a model fits.
inline constexpr double clock_error_s = 20e-6;

/// A stretch of time in which the same kinds of region are open: the same activity.
struct Segment {
    double start_s, end_s;
    int activity;
};

/// Time cut at every edge. Seconds count from `origin_ns`; the first and the last segment reach beyond all
/// refreshes.
struct Timeline {
    std::int64_t origin_ns = 0;
    std::vector<Segment> segments;
    std::vector<std::vector<int>> activities;      ///< open kinds, in order; that without any is idleness
    std::vector<std::pair<int, int>> segments_of;  ///< per region: first segment, and one past the last
    std::vector<int> kind_of;                      ///< per region
    std::vector<RegionKind> kinds;                 ///< without energies yet

    bool contains(int activity, int kind) const;
};
Timeline cut(std::span<const RegionSpan> regions, std::int64_t first_ns, std::int64_t last_ns);

/// An increment between two refreshes, and when they were.
struct Increment {
    double from_s, to_s, energy_j;
};

/// When refreshes took place: on a regular grid where their bounds allow one, else amid their bounds. The
/// refresh period is estimated where it is not known (0), from refreshes that follow one another.
struct Instants {
    std::vector<double> at_s;
    double refresh_s = 0;
    bool on_grid = false;
};
Instants instants(std::span<const Refresh> refreshes, std::int64_t origin_ns, double known_refresh_s);

/// The increments of a counter between those instants.
struct Increments {
    std::vector<Increment> steps;
    double refresh_s = 0;
    bool on_grid = false;
};
Increments increments(std::span<const Refresh> refreshes, std::int64_t origin_ns, double known_refresh_s);

/// Seconds of an increment that belong to a segment.
struct Exposure {
    int increment, segment;
    double seconds;
};

/// How the sensor sees time. A grid of refreshes is known to parts per million only, and over minutes that
/// counts: `stretch` is what its period is off.
struct Optics {
    double lag_s = 0, window_s = 0, stretch = 0;
};

/// A step small against any lag or window (in s), for slopes.
inline constexpr double optics_step = 1e-5;

/// The sensor's view: `design` has a row per increment and a column per activity.
struct View {
    std::vector<Exposure> exposures;
    Eigen::MatrixXd design;
};
View view(const Timeline& timeline, std::span<const Increment> steps, const Optics& optics);

/// Optics by least squares, with the powers eliminated: a search on a grid, then Gauss-Newton.
struct Fit {
    Optics optics;
    View seen;
    Eigen::VectorXd power_w;     ///< per activity, not negative
    Eigen::VectorXd residual_j;  ///< per increment
    /// Those of the optics that were fitted and act, and d(expected increments) by each, a column each.
    std::vector<double Optics::*> fitted;
    Eigen::MatrixXd slopes;
    bool separable = true;  ///< no activity is a combination of others
};
Fit fit(const Timeline& timeline, const Increments& increments, const SensorTiming& timing);

}  // namespace joulemark::meter::attribution
