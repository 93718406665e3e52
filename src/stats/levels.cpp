// SPDX-License-Identifier: Apache-2.0
#include "stats/levels.h"

#include <algorithm>
#include <cmath>

#include "stats/summary.h"

namespace joulemark::stats {

double LevelMeans::within_excess() const {
    return within_variance * (1 - repeats.cwiseInverse().mean());
}

LevelMeans level_means(std::span<const Level> levels) {
    std::vector<const Level*> sorted;
    for (const Level& level : levels) {
        sorted.push_back(&level);
    }
    std::ranges::stable_sort(sorted, {}, &Level::x);

    const auto n = static_cast<Eigen::Index>(sorted.size());
    LevelMeans means;
    means.x.resize(n);
    means.log_mean.resize(n);
    means.repeats.resize(n);
    double squares = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
        const Level& level = *sorted[static_cast<std::size_t>(i)];
        std::vector<double> logs;
        for (const double value : level.values) {
            logs.push_back(std::log(value));
        }
        const Summary summary = summarise(logs).value();
        means.x[i] = level.x;
        means.log_mean[i] = summary.mean;
        means.repeats[i] = static_cast<double>(summary.n);
        if (summary.sd) {
            squares += *summary.sd * *summary.sd * static_cast<double>(summary.n - 1);
            means.within_df += static_cast<int>(summary.n) - 1;
        }
    }
    means.within_variance = means.within_df > 0 ? squares / means.within_df : 0;
    return means;
}

Eigen::VectorXd mean_weights(const LevelMeans& means, double between) {
    if (means.balanced() || means.within_variance == 0) {
        return Eigen::VectorXd::Ones(means.size());
    }
    const Eigen::VectorXd weights =
        (between + means.within_variance * means.repeats.cwiseInverse().array()).inverse();
    return weights / weights.mean();
}

}  // namespace joulemark::stats
