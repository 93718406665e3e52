// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "stats/estimate.h"

namespace joulemark::stats {

/// Variable projection (Golub and Pereyra 1973) for models with one non-linear parameter: `rss(bend)` is the
/// sum of squares left when all other parameters are chosen best for that value of it.
struct ProjectedMinimum {
    double at = 0;
    double rss = 0;
    bool at_limit = false;  ///< the least sum is at an end of the range: the data do not determine the bend
};

/// A grid over `range` finds the valley, Brent's method its bottom.
ProjectedMinimum minimise_projected(const std::function<double(double)>& rss, const Interval& range);

/// Where `rss` stays below best.rss + allowance: with allowance = t(0.975, df)^2 times the residual variance
/// the profile-t interval of the bend (Bates and Watts 1988, 6.1). An end beyond `range` is infinite.
Interval profile_interval(const std::function<double(double)>& rss, const ProjectedMinimum& best,
                          const Interval& range, double allowance);

}  // namespace joulemark::stats
