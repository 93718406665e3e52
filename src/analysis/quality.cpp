// SPDX-License-Identifier: Apache-2.0
#include "analysis/quality.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "analysis/configurations.h"
#include "stats/distributions.h"

namespace joulemark::analysis {
namespace {

constexpr double level_of_significance = 0.05;

std::vector<double> qualities(const Configuration& configuration) {
    std::vector<double> values;
    for (const RunMetrics* run : configuration.runs) {
        if (run->quality) {
            values.push_back(run->quality->value);
        }
    }
    return values;
}

bool seeds_vary(const Configuration& configuration) {
    std::set<std::string> seeds;
    for (const RunMetrics* run : configuration.runs) {
        seeds.insert(run->train_seed);
    }
    return seeds.size() == configuration.runs.size() && !seeds.contains("") && configuration.runs.size() > 1;
}

/// One-sided p of `worse` having the larger mean (Welch 1947).
double welch_p(const stats::Summary& worse, const stats::Summary& better) {
    const double a = *worse.sd * *worse.sd / static_cast<double>(worse.n);
    const double b = *better.sd * *better.sd / static_cast<double>(better.n);
    if (a + b == 0) {
        return worse.mean > better.mean ? 0 : 1;
    }
    const double df = (a + b) * (a + b) /
                      (a * a / static_cast<double>(worse.n - 1) + b * b / static_cast<double>(better.n - 1));
    const double t = (worse.mean - better.mean) / std::sqrt(a + b);
    const double two_sided = stats::t_two_sided(t, df);
    return t > 0 ? two_sided / 2 : 1 - two_sided / 2;
}

/// Whether each level after the first is worse than the best one before it, by Holm's step-down over them.
std::vector<bool> significantly_worse(const std::vector<stats::Summary>& levels) {
    std::vector<std::pair<double, std::size_t>> p;
    std::size_t best = 0;
    for (std::size_t i = 1; i < levels.size(); ++i) {
        p.emplace_back(welch_p(levels[i], levels[best]), i);
        best = levels[i].mean < levels[best].mean ? i : best;
    }
    std::ranges::sort(p);
    std::vector<bool> worse(levels.size(), false);
    for (std::size_t rank = 0; rank < p.size(); ++rank) {
        if (p[rank].first > level_of_significance / static_cast<double>(p.size() - rank)) {
            break;
        }
        worse[p[rank].second] = true;
    }
    return worse;
}

BatchKnee knee_of(const Series& series, const std::vector<const Configuration*>& members) {
    const Quality& told = *members.front()->runs.front()->quality;
    BatchKnee knee{.group = series.group,
                   .quality = told.name,
                   .direction = told.direction,
                   .levels = {},
                   .knee = {},
                   .beyond = {},
                   .reason = "",
                   .simulated = any_simulated(members)};
    const double sign = told.direction == "higher" ? -1 : 1;  // larger is worse from here on
    std::vector<stats::Summary> worse_up;
    bool testable = true;
    for (const Configuration* member : members) {
        auto values = qualities(*member);
        knee.levels.push_back({*member->number(series.factor), *stats::summarise(values)});
        std::ranges::transform(values, values.begin(), [&](double value) { return sign * value; });
        worse_up.push_back(*stats::summarise(values));
        testable = testable && worse_up.back().sd && seeds_vary(*member);
    }
    if (!testable) {
        knee.reason = "described only: a knee needs repeats over training seeds at every batch";
        return knee;
    }
    const auto worse = significantly_worse(worse_up);
    const auto first = std::ranges::find(worse, true);
    if (first == worse.end()) {
        knee.reason = "no batch is significantly worse than a smaller one";
        return knee;
    }
    const auto at = static_cast<std::size_t>(first - worse.begin());
    knee.beyond = knee.levels[at].batch;
    knee.knee = knee.levels[at - 1].batch;
    knee.reason = "Welch's t, one-sided 5 %, Holm over the batches";
    return knee;
}

}  // namespace

std::vector<BatchKnee> batch_knees(const std::vector<Configuration>& configurations) {
    std::vector<Series> all = series_over(configurations, "global_batch");
    // With the local batch fixed, the global batch grows with the GPUs.
    for (Series& series : series_over(configurations, "gpus")) {
        if (series.scaling == "weak" && !series.data_grows) {
            series.factor = "global_batch";
            all.push_back(std::move(series));
        }
    }
    std::vector<BatchKnee> knees;
    for (const Series& series : all) {
        std::vector<const Configuration*> members;
        std::set<std::string> metrics;
        for (const Configuration* member : series.members) {
            if (!qualities(*member).empty() && member->runs.front()->quality &&
                member->number("global_batch")) {
                members.push_back(member);
                metrics.insert(member->runs.front()->quality->name);
            }
        }
        if (members.size() >= 2 && metrics.size() == 1) {
            knees.push_back(knee_of(series, members));
        }
    }
    return knees;
}

}  // namespace joulemark::analysis
