// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Usable runs grouped by equal factors, each metric summarised over its repeats; ordered by their factors.
/// The configurations point into `runs`.
std::vector<Configuration> configurations_of(const std::vector<RunMetrics>& runs);

/// Of two means of positive values, with its Welch interval; none from single runs. Precondition: both have
/// the metric.
stats::Estimate ratio(const Configuration& a, const Configuration& b, std::string_view metric);

bool any_simulated(const std::vector<const Configuration*>& configurations);

/// Configurations that differ in one factor (and in what follows from it) only, ordered by that factor.
struct Series {
    std::string factor;
    std::string scaling;   ///< over gpus: "strong" (global batch fixed), "weak" (local batch fixed); else ""
    nlohmann::json group;  ///< the factors that stay constant
    std::vector<const Configuration*> members;
    bool data_grows = false;  ///< the data set's size differs between levels: times form no scaling law

    std::size_t levels() const;
};

/// Every series of two or more levels over `factor`, one-factor and full-factorial designs alike.
std::vector<Series> series_over(const std::vector<Configuration>& configurations, const std::string& factor);

}  // namespace joulemark::analysis
