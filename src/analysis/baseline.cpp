// SPDX-License-Identifier: Apache-2.0
#include "analysis/baseline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/run_format.h"

namespace joulemark::analysis {
namespace {

/// Sum over all GPUs; absent where one did not tell, or nothing was metered.
void add_power(Value& sum, bool& complete, const store::RegionRecord& region) {
    for (const store::DeviceMetrics& device : region.devices) {
        if (device.component == "gpu") {
            complete = complete && device.mean_power_w.has_value();
            sum = sum.value_or(0) + device.mean_power_w.value_or(0);
        }
    }
}

/// Change of a straight line through the temperatures of consecutive epochs, from the first to the last.
Value trend(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    if (values.size() < 3) {
        return std::nullopt;
    }
    double mean = 0, sxy = 0, sxx = 0;
    for (const double value : values) {
        mean += value / n;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = static_cast<double>(i) - (n - 1) / 2;
        sxx += x * x;
        sxy += x * (values[i] - mean);
    }
    return sxy / sxx * (n - 1);
}

}  // namespace

Baseline baseline(const store::RunRecord& record, std::int64_t warmup_epochs) {
    Baseline found;
    bool before = true, after = true;
    for (const store::HostRecord& host : record.hosts) {
        std::map<std::string, std::vector<double>> temperatures;  // of the timed epochs, by GPU
        for (const store::RegionRecord& region : host.regions) {
            if (region.name == run_format::idle_before_region) {
                add_power(found.idle_before_w, before, region);
            } else if (region.name == run_format::idle_after_region) {
                add_power(found.idle_after_w, after, region);
            } else if (region.name == "epoch" && !region.open && region.index >= warmup_epochs) {
                for (const store::DeviceMetrics& device : region.devices) {
                    if (device.component == "gpu" && device.temperature_c) {
                        temperatures[device.device].push_back(*device.temperature_c);
                    }
                }
            }
        }
        for (const auto& [gpu, values] : temperatures) {
            if (const Value change = trend(values);
                change && std::abs(*change) > std::abs(found.temperature_change_k.value_or(0))) {
                found.temperature_change_k = change;
            } else if (change && !found.temperature_change_k) {
                found.temperature_change_k = change;
            }
        }
    }
    if (!before) {
        found.idle_before_w.reset();
    }
    if (!after) {
        found.idle_after_w.reset();
    }
    if (found.temperature_change_k) {
        found.steady = std::abs(*found.temperature_change_k) <= steady_within_k;
    }
    return found;
}

}  // namespace joulemark::analysis
