// SPDX-License-Identifier: Apache-2.0
#include "study/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/csv.h"

namespace joulemark::study {
namespace {

struct Published {
    std::string_view model, accelerator;
    Range kwh_per_gpu_hour;
    std::string_view source;
};

/// Huber et al. 2025, "Energy Consumption in Parallel Neural Network Training" (arXiv 2508.07706): the range
/// over its configurations, with what was metered. The FourCastNet figures are of single runs but for one
/// configuration.
constexpr std::array published{
    Published{"resnet50", "A100", {0.27, 0.31}, "Huber et al. 2025 (GPU + CPU + DRAM, ResNet-50 on A100)"},
    Published{
        "fourcastnet", "A100", {0.18, 0.23}, "Huber et al. 2025 (GPU + CPU + DRAM, FourCastNet on A100)"},
    Published{"fourcastnet", "H100", {0.26, 0.28}, "Huber et al. 2025 (GPU + CPU, FourCastNet on H100)"},
};

double relative(const Relative& factors, const Configuration& configuration) {
    double product = 1;
    for (const auto& [factor, levels] : factors) {
        const Level* level = configuration.find(factor);
        const auto found = level == nullptr
                               ? levels.end()
                               : std::ranges::find(levels, *level, &std::pair<Level, double>::first);
        product *= found == levels.end() ? 1 : found->second;
    }
    return product;
}

std::optional<double> hours(const Expectation& expectation, const PlannedRun& run) {
    const Level gpus(static_cast<double>(run.gpus));
    const auto listed = std::ranges::find(expectation.gpu_hours, gpus, &std::pair<Level, double>::first);
    if (listed != expectation.gpu_hours.end()) {
        return listed->second;
    }
    if (!expectation.epoch_time_s) {
        return std::nullopt;
    }
    const double epoch_s = *expectation.epoch_time_s *
                           std::pow(run.gpus / expectation.gpus, expectation.gpu_exponent) *
                           relative(expectation.relative_time, run.factors);
    return run.gpus * run.workload->epochs * epoch_s / 3600;
}

}  // namespace

Expected expect(const PlannedRun& run) {
    Expected expected;
    const auto& nearest = run.workload->expect ? run.workload->expect : run.series->expect;
    if (!nearest || !run.skipped.empty()) {
        return expected;
    }
    expected.gpu_hours = hours(*nearest, run);
    if (!expected.gpu_hours) {
        return expected;
    }
    expected.gpu_hours_source = nearest->source;
    const auto from_range = [&](const Range& range, double factor, std::string source) {
        expected.energy_kwh =
            Range{range.low * factor * *expected.gpu_hours, range.high * factor * *expected.gpu_hours};
        expected.energy_source = std::move(source);
    };
    const auto known = std::ranges::find_if(published, [&](const Published& row) {
        return row.model == run.workload->model && row.accelerator == nearest->accelerator;
    });
    if (nearest->kwh_per_gpu_hour) {
        from_range(*nearest->kwh_per_gpu_hour, relative(nearest->relative_power, run.factors),
                   nearest->source);
    } else if (known != published.end()) {
        from_range(known->kwh_per_gpu_hour, relative(nearest->relative_power, run.factors),
                   std::string(known->source));
    } else if (const auto cap = run.factors.number("power_cap_w")) {
        from_range({0, *cap / 1000}, 1, "the power cap: at most cap x GPU hours, GPU boards alone");
        expected.energy_is_bound = true;
    }
    return expected;
}

}  // namespace joulemark::study
