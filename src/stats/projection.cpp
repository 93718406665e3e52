// SPDX-License-Identifier: Apache-2.0
#include "stats/projection.h"

#include <algorithm>
#include <limits>

#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>

namespace joulemark::stats {

ProjectedMinimum minimise_projected(const std::function<double(double)>& rss, const Interval& range) {
    constexpr int steps = 32;
    const double width = (range.high - range.low) / steps;
    int best = 0;
    double least = infinity;
    for (int step = 0; step <= steps; ++step) {
        const double sum = rss(range.low + step * width);
        if (sum < least) {
            least = sum;
            best = step;
        }
    }
    const double at = range.low + best * width;
    const auto [bend, sum] = boost::math::tools::brent_find_minima(rss, std::max(range.low, at - width),
                                                                   std::min(range.high, at + width),
                                                                   std::numeric_limits<double>::digits / 2);
    return {bend, sum, best == 0 || best == steps};
}

Interval profile_interval(const std::function<double(double)>& rss, const ProjectedMinimum& best,
                          const Interval& range, double allowance) {
    const auto excess = [&](double bend) { return rss(bend) - best.rss - allowance; };
    const auto end = [&](double direction, double limit) {
        double inside = best.at;
        for (double step = 1e-4 * (range.high - range.low);; step *= 2) {
            const double outside = best.at + direction * step;
            if (direction * (outside - limit) >= 0) {
                return direction * infinity;
            }
            if (excess(outside) > 0) {
                std::uintmax_t iterations = 60;
                const auto root = boost::math::tools::toms748_solve(
                    excess, std::min(inside, outside), std::max(inside, outside),
                    boost::math::tools::eps_tolerance<double>(30), iterations);
                return (root.first + root.second) / 2;
            }
            inside = outside;
        }
    };
    return {end(-1, range.low), end(1, range.high)};
}

}  // namespace joulemark::stats
