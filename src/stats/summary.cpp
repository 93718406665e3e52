// SPDX-License-Identifier: Apache-2.0
#include "stats/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/distributions.h"

namespace joulemark::stats {

std::optional<Summary> summarise(std::span<const double> values) {
    if (values.empty()) {
        return std::nullopt;
    }
    const auto n = static_cast<double>(values.size());
    Summary summary{.n = values.size(), .mean = 0, .sd = {}, .ci95 = {}};
    summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    // One correction step removes the rounding of the first sum.
    double rest = 0;
    for (const double value : values) {
        rest += value - summary.mean;
    }
    summary.mean += rest / n;
    if (values.size() > 1) {
        double squares = 0;
        for (const double value : values) {
            squares += (value - summary.mean) * (value - summary.mean);
        }
        summary.sd = std::sqrt(squares / (n - 1));
        const double half = t95(n - 1) * *summary.sd / std::sqrt(n);
        summary.ci95 = Interval{summary.mean - half, summary.mean + half};
    }
    return summary;
}

double median(std::span<const double> values) {
    return quantile(values, 0.5);
}

double quantile(std::span<const double> values, double p) {
    if (values.empty()) {
        return std::nan("");
    }
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const double at = p * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace joulemark::stats
