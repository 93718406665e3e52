// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// A published number and what it was measured over.
struct Published {
    std::string_view source;
    std::string_view workload, hardware;  ///< matched as parts of names, without case and punctuation
    std::string_view metric;              ///< of MetricField
    double low, high;                     ///< equal for a single value
    std::string_view components;          ///< as RunMetrics::components, "+" between
    std::string_view note;                ///< n, preliminary or not, conditions
};

std::span<const Published> published_numbers();

/// Configurations beside the published numbers of the same workload, hardware and metric; where the measured
/// components differ that is said, and no ratio is given.
std::vector<PublishedComparison> compare_with_published(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
