// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

namespace joulemark::stats {

/// One configuration of a series: the level of the factor that varies, and its repeats (positive values).
struct Level {
    double x = 0;
    std::vector<double> values;
};

/// What fits work on: per configuration the mean of the logarithms of its repeats, because the noise of
/// times and energies is relative. Repeats of one configuration share whatever makes that configuration
/// differ from the law, so they count as one point, however many they are.
struct LevelMeans {
    Eigen::VectorXd x, log_mean, repeats;
    double within_variance = 0;  ///< of log values inside configurations, pooled; 0 without repeats
    int within_df = 0;           ///< 0: no configuration was repeated

    Eigen::Index size() const { return x.size(); }
    bool balanced() const { return (repeats.array() == repeats[0]).all(); }
    /// Expected variance of one run about its configuration's mean beyond what the means' scatter shows.
    double within_excess() const;
};

/// Sorted by x. Precondition: every level has values, all positive.
LevelMeans level_means(std::span<const Level> levels);

/// Inverse-variance weights of the means for a between-configuration variance `between`: 1 / (between +
/// within / repeats), scaled to mean 1. Equal weights when the design is balanced or nothing is repeated.
Eigen::VectorXd mean_weights(const LevelMeans& means, double between);

}  // namespace joulemark::stats
