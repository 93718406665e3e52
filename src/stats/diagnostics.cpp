// SPDX-License-Identifier: Apache-2.0
#include "stats/diagnostics.h"

#include <cmath>

#include "stats/distributions.h"
#include "stats/linear.h"

namespace joulemark::stats {

std::optional<double> heteroscedasticity_p(const LawFit& fit) {
    if (fit.levels < 5 || !(fit.rss > 0)) {
        return std::nullopt;
    }
    std::vector<double> log_x, squares;
    for (Eigen::Index i = 0; i < fit.x.size(); ++i) {
        log_x.push_back(std::log(fit.x[i]));
        squares.push_back(fit.weights[i] * fit.log_residuals[i] * fit.log_residuals[i]);
    }
    const auto auxiliary = fit_line(log_x, squares);
    return auxiliary ? std::optional(chi_squared_upper(fit.levels * std::max(0.0, auxiliary->r2), 1))
                     : std::nullopt;
}

std::vector<double> cooks_distance(const LawFit& fit) {
    std::vector<double> distances;
    if (fit.df < 1 || !(fit.variance > 0)) {
        return distances;
    }
    const auto p = static_cast<double>(fit.parameters.size());
    for (Eigen::Index i = 0; i < fit.x.size(); ++i) {
        const double leverage = std::min(fit.leverage[i], 1 - 1e-12);
        const double scaled =
            fit.weights[i] * fit.log_residuals[i] * fit.log_residuals[i] / (p * fit.variance);
        distances.push_back(scaled * leverage / ((1 - leverage) * (1 - leverage)));
    }
    return distances;
}

std::vector<double> influential_levels(const LawFit& fit) {
    std::vector<double> levels;
    const auto distances = cooks_distance(fit);
    for (std::size_t i = 0; i < distances.size(); ++i) {
        if (distances[i] > 1) {
            levels.push_back(fit.x[static_cast<Eigen::Index>(i)]);
        }
    }
    return levels;
}

}  // namespace joulemark::stats
