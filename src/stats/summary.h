// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "stats/estimate.h"

namespace joulemark::stats {

/// Mean of `n` repeats; one repeat has neither a standard deviation nor an interval.
struct Summary {
    std::size_t n = 0;
    double mean = 0;
    std::optional<double> sd = {};      ///< of one repeat, n - 1 in the denominator
    std::optional<Interval> ci95 = {};  ///< mean -+ t(0.975, n - 1) sd / sqrt(n)
};

/// Nothing without values. Deviations are taken from the mean (two passes), so that a large common part
/// costs no digits.
std::optional<Summary> summarise(std::span<const double> values);

/// The same of a mean that is given with the standard deviation of its repeats, where that is known.
Summary summary_of(std::size_t n, double mean, std::optional<double> sd);

/// The ratio of two quantities from summaries of their logarithms, with its Welch interval; none where either
/// has no standard deviation.
Estimate ratio(const Summary& log_a, const Summary& log_b);

/// Middle value, the mean of the two middle ones for an even count; NaN without values.
double median(std::span<const double> values);
/// Linear interpolation between order statistics (Hyndman and Fan 1996, type 7), 0 <= p <= 1; NaN without
/// values.
double quantile(std::span<const double> values, double p);

}  // namespace joulemark::stats
