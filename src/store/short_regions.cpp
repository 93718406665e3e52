// SPDX-License-Identifier: Apache-2.0
#include "store/short_regions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/run_format.h"
#include "core/units.h"

namespace joulemark::store {
namespace {

/// Longer than this no region is attributed, whatever the sensor: none in use refreshes slower than ten times
/// a second.
constexpr std::int64_t longest_ns = 5 * ns_per_s;
/// A bound wider than this share of its energy is worth a warning.
constexpr double wide_bound = 0.1;

bool of_program(const RegionRecord& region) {
    return !region.open && region.end_ns > region.start_ns &&
           !region.name.starts_with(run_format::own_prefix);
}

bool is_short(const RegionRecord& region) {
    return of_program(region) && region.end_ns - region.start_ns <= longest_ns;
}

/// Another answer than the counter's by more than full power during what the counter can be late means that
/// the model does not hold.
bool agrees(const DeviceMetrics& metrics, const meter::AttributedEnergy& attributed, double peak_w,
            const meter::Attribution& found) {
    const double late_s = 2 * (found.refresh_s + std::abs(found.lag_s) + found.window_s);
    return metrics.energy_method != "counter" ||
           std::abs(attributed.energy_j - *metrics.energy_j) <= peak_w * late_s + attributed.bound_j;
}

/// Attribution may leave much open too, or not fit some regions, so that their differences stay.
void warn_of_wide_bounds(HostRecord& host, const std::string& device, std::size_t number) {
    std::size_t known = 0, wide = 0;
    for (const RegionRecord& region : host.regions) {
        const DeviceMetrics& metrics = region.devices[number];
        if (is_short(region) && metrics.energy_j) {
            ++known;
            wide += metrics.energy_bound_j.value_or(0) > wide_bound * *metrics.energy_j ? 1 : 0;
        }
    }
    if (wide > 0) {
        host.warnings.push_back(
            {"short_regions",
             fmt::format("{}: the energies of {} of {} short regions are uncertain by more than {:.0f} %; "
                         "the mean over their repeats is known better, or mark longer regions",
                         device, wide, known, 100 * wide_bound)});
    }
}

}  // namespace

std::vector<meter::RefreshLog::Span> short_spans(const std::vector<RegionRecord>& regions) {
    std::vector<meter::RefreshLog::Span> spans;
    for (const RegionRecord& region : regions) {
        if (is_short(region)) {
            spans.push_back({region.start_ns, region.end_ns});
        }
    }
    std::ranges::sort(spans, {}, &meter::RefreshLog::Span::start_ns);
    return spans;
}

void attribute_short_regions(HostRecord& host, const DeviceWindows& device, std::size_t number) {
    const meter::RefreshLog* log = device.refreshes();
    if (log == nullptr || log->refreshes().empty()) {
        return;
    }
    const auto refuse = [&](const Failure& failure) {
        const bool coarse = std::ranges::any_of(host.regions, [&](const RegionRecord& region) {
            const DeviceMetrics& metrics = region.devices[number];
            return is_short(region) && metrics.energy_j &&
                   metrics.energy_bound_j.value_or(0) > wide_bound * *metrics.energy_j;
        });
        if (!coarse) {
            return;
        }
        host.warnings.push_back(
            {"short_regions",
             fmt::format("{}: energy of short regions is a difference of stale readings, within "
                         "its bound: {}; {}",
                         device.id(), failure.reason, failure.remedy)});
    };
    if (!log->resolved()) {
        refuse({"the counter was read too seldom to see it refresh", "joulemark run --energy-rate 50 does"});
        return;
    }
    std::vector<meter::RegionSpan> spans;
    std::vector<RegionRecord*> records;
    const std::int64_t first_ns = log->refreshes().front().earliest_ns;
    const std::int64_t last_ns = log->refreshes().back().latest_ns;
    for (RegionRecord& region : host.regions) {
        if (of_program(region) && region.start_ns < last_ns && region.end_ns > first_ns) {
            spans.push_back({region.name, region.start_ns, region.end_ns});
            records.push_back(&region);
        }
    }
    const auto found = meter::attribute(spans, log->refreshes(), device.energy_timing());
    if (!found) {
        refuse(found.failure());
        return;
    }
    double peak_w = 0;
    for (const RegionRecord* region : records) {
        const DeviceMetrics& metrics = region->devices[number];
        peak_w = std::max(peak_w, metrics.max_power_w.value_or(metrics.mean_power_w.value_or(0)));
    }
    const double longest_s = meter::longest_attributed_refreshes * found->refresh_s;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto& attributed = found->regions[i];
        DeviceMetrics& metrics = records[i]->devices[number];
        const bool short_enough = records[i]->duration_s() <= longest_s && is_short(*records[i]);
        if (attributed && metrics.energy_j && short_enough && metrics.energy_method != "estimated" &&
            attributed->bound_j < metrics.energy_bound_j.value_or(INFINITY) &&
            agrees(metrics, *attributed, peak_w, *found)) {
            metrics.energy_j = attributed->energy_j;
            metrics.energy_bound_j = attributed->bound_j;
            metrics.energy_method = "attributed";
            metrics.mean_power_w = attributed->energy_j / records[i]->duration_s();
        }
    }
    warn_of_wide_bounds(host, device.id(), number);
    for (const meter::RegionKind& kind : found->kinds) {
        if (kind.mean_duration_s <= longest_s) {
            host.attributions.push_back({.device = device.id(),
                                         .name = kind.name,
                                         .regions = static_cast<std::int64_t>(kind.n),
                                         .mean_duration_s = kind.mean_duration_s,
                                         .mean_energy_j = kind.mean.energy_j,
                                         .mean_bound_j = kind.mean.bound_j,
                                         .idle_power_w = found->idle_power_w,
                                         .refresh_s = found->refresh_s,
                                         .lag_s = found->lag_s,
                                         .window_s = found->window_s,
                                         .calibrated = found->calibrated});
        }
    }
}

}  // namespace joulemark::store
