// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>

namespace joulemark::stats {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// A closed interval; an infinite end means that the data do not bound the value on that side.
struct Interval {
    double low = 0, high = 0;

    bool contains(double value) const { return low <= value && value <= high; }
    double half_width() const { return (high - low) / 2; }
};

/// A value and its 95 % confidence interval; none when the data leave no degrees of freedom for one.
struct Estimate {
    double value = 0;
    std::optional<Interval> ci95;
};

}  // namespace joulemark::stats
