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
        return summary_of(values.size(), summary.mean, std::sqrt(squares / (n - 1)));
    }
    return summary;
}

Summary summary_of(std::size_t count, double mean, std::optional<double> sd) {
    Summary summary{.n = count, .mean = mean, .sd = sd, .ci95 = {}};
    if (sd && count > 1) {
        const auto n = static_cast<double>(count);
        const double half = t95(n - 1) * *sd / std::sqrt(n);
        summary.ci95 = Interval{mean - half, mean + half};
    }
    return summary;
}

Estimate ratio(const Summary& log_a, const Summary& log_b) {
    const double value = log_a.mean - log_b.mean;
    Estimate estimate{std::exp(value), std::nullopt};
    if (log_a.sd && log_b.sd) {
        const double va = *log_a.sd * *log_a.sd / static_cast<double>(log_a.n);
        const double vb = *log_b.sd * *log_b.sd / static_cast<double>(log_b.n);
        const double df = va + vb > 0 ? (va + vb) * (va + vb) /
                                            (va * va / static_cast<double>(log_a.n - 1) +
                                             vb * vb / static_cast<double>(log_b.n - 1))
                                      : 1;
        const double half = va + vb > 0 ? t95(df) * std::sqrt(va + vb) : 0;
        estimate.ci95 = Interval{std::exp(value - half), std::exp(value + half)};
    }
    return estimate;
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
