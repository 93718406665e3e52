// SPDX-License-Identifier: Apache-2.0
#include "store/summary.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/run_format.h"
#include "store/host_digest.h"
#include "store/mean.h"

namespace joulemark::store {
namespace {

/// Parts that do not contain each other; "node" contains them all.
constexpr std::array<std::string_view, 3> parts{"gpu", "cpu", "dram"};

void accumulate(std::optional<double>& total, std::optional<double> part) {
    if (part) {
        total = total.value_or(0) + *part;
    }
}

RegionSummary summarise(const std::vector<const RegionRecord*>& regions) {
    RegionSummary summary;
    summary.name = regions.front()->name;
    summary.index = regions.front()->index;
    summary.hosts = regions.size();
    Mean loss, quality, memory, busy, sm, covered;
    std::set<std::string> measured;
    for (const RegionRecord* region : regions) {
        for (const DeviceMetrics& device : region->devices) {
            if (device.energy_j) {
                measured.insert(device.component);
            }
        }
    }
    const bool by_parts = std::ranges::any_of(
        parts, [&](std::string_view part) { return measured.contains(std::string(part)); });
    std::set<std::string> methods;
    for (const RegionRecord* region : regions) {
        summary.open = summary.open || region->open;
        summary.wall_time_s = std::max(summary.wall_time_s, region->duration_s());
        accumulate(summary.samples, region->samples);
        accumulate(summary.updates, region->updates);
        accumulate(summary.tokens, region->tokens);
        const double weight = region->samples.value_or(0) > 0 ? *region->samples : 1;
        loss.add(region->loss, weight);
        quality.add(region->quality, weight);
        if (region->quality) {
            summary.quality_name = region->quality_name;
            summary.quality_direction = region->quality_direction;
        }
        for (const DeviceMetrics& device : region->devices) {
            summary.simulated = summary.simulated || device.simulated;
            if (device.energy_j) {
                summary.energy_by_component_j[device.component] += *device.energy_j;
            }
            const bool counts =
                by_parts ? std::ranges::count(parts, device.component) > 0 : device.component == "node";
            if (counts && device.energy_j) {
                accumulate(summary.energy_j, device.energy_j);
                accumulate(summary.energy_bound_j, device.energy_bound_j);
                accumulate(summary.mean_power_w, device.mean_power_w);
                methods.insert(device.energy_method);
            }
            if (device.component == "gpu") {
                ++summary.gpus;
                summary.gpus_without_energy += device.energy_j ? 0 : 1;
                accumulate(summary.gpu_energy_counter_j, device.energy_counter_j);
                accumulate(summary.gpu_energy_integrated_j, device.energy_integrated_j);
                accumulate(summary.gpu_energy_protocol_j, device.energy_protocol_j);
                memory.add(device.gpu_memory_util_pct);
                busy.add(device.gpu_busy_pct);
                sm.add(device.sm_util_pct);
                if (region->end_ns > region->start_ns) {
                    covered.add(100 * device.covered_s / region->duration_s());
                }
            }
        }
    }
    summary.loss = loss.value();
    summary.quality = quality.value();
    summary.gpu_memory_util_pct = memory.value();
    summary.gpu_busy_pct = busy.value();
    summary.sm_util_pct = sm.value();
    summary.gpu_covered_pct = covered.value().value_or(0);
    std::vector<std::string> contained;
    if (by_parts) {
        for (const std::string_view part : parts) {
            if (measured.contains(std::string(part))) {
                contained.emplace_back(part);
            }
        }
    } else if (summary.energy_j) {
        contained.emplace_back("node");
    }
    summary.energy_components = fmt::format("{}", fmt::join(contained, "+"));
    summary.energy_method = fmt::format("{}", fmt::join(methods, "+"));
    summary.estimated = methods.contains("estimated");
    return summary;
}

/// What another tool's table says of the run; null where this is no such run.
const nlohmann::json* imported_metrics(const RunRecord& run) {
    if (run.hosts.empty()) {
        return nullptr;
    }
    const auto imported = run.hosts.front().run_json.find("imported");
    if (imported == run.hosts.front().run_json.end() || !imported->is_object()) {
        return nullptr;
    }
    const auto metrics = imported->find("metrics");
    return metrics != imported->end() && metrics->is_object() ? &*metrics : nullptr;
}

RegionSummary summarise_imported(const RunRecord& run, const nlohmann::json& metrics) {
    RegionSummary summary;
    summary.name = run_format::command_region;
    summary.hosts = run.hosts.size();
    const auto gpus = json_number(run.factors, "gpus");
    const auto gpu_hours = json_number(metrics, "gpu_hours");
    const auto epoch_time_s = json_number(metrics, "epoch_time_s");
    if (const auto wall = json_number(metrics, "wall_time_s")) {
        summary.wall_time_s = *wall;
    } else if (gpu_hours && gpus && *gpus > 0) {
        summary.wall_time_s = *gpu_hours * 3600 / *gpus;
    } else if (epoch_time_s) {
        summary.wall_time_s = *epoch_time_s * json_number(run.factors, "epochs").value_or(1);
    }
    summary.gpus = static_cast<std::size_t>(gpus.value_or(0));
    summary.mean_power_w = json_number(metrics, "mean_power_w");
    summary.energy_j = json_number(metrics, "energy_j");
    if (!summary.energy_j && summary.mean_power_w && summary.wall_time_s > 0) {
        summary.energy_j = *summary.mean_power_w * summary.wall_time_s;
    } else if (!summary.mean_power_w && summary.energy_j && summary.wall_time_s > 0) {
        summary.mean_power_w = *summary.energy_j / summary.wall_time_s;
    }
    if (summary.energy_j) {
        summary.energy_components = "as given";
        summary.energy_method = "imported";
    }
    return summary;
}

}  // namespace

std::optional<double> RegionSummary::joule_per_sample() const {
    return energy_j && samples && *samples > 0 ? std::optional(*energy_j / *samples) : std::nullopt;
}

std::vector<RegionSummary> summarise_regions(const RunRecord& run) {
    using Key = std::pair<std::string, std::int64_t>;
    std::map<Key, std::vector<const RegionRecord*>> by_key;
    std::map<Key, double> begin_s;  // since the host's own first region: clocks of hosts are not compared
    for (const HostRecord& host : run.hosts) {
        for (const RegionRecord& region : host.regions) {
            const Key key{region.name, region.index};
            by_key[key].push_back(&region);
            begin_s.try_emplace(key,
                                static_cast<double>(region.start_ns - host.regions.front().start_ns) * 1e-9);
        }
    }
    std::vector<Key> order;
    for (const auto& [key, regions] : by_key) {
        order.push_back(key);
    }
    std::ranges::stable_sort(order, {}, [&](const Key& key) {
        return std::pair(key.first != run_format::command_region, begin_s.at(key));
    });
    std::vector<RegionSummary> summaries;
    for (const Key& key : order) {
        summaries.push_back(summarise(by_key.at(key)));
    }
    return summaries;
}

std::optional<RegionSummary> summarise_run(const RunRecord& run) {
    if (const nlohmann::json* metrics = imported_metrics(run)) {
        return summarise_imported(run, *metrics);
    }
    std::vector<const RegionRecord*> commands;
    for (const HostRecord& host : run.hosts) {
        for (const RegionRecord& region : host.regions) {
            if (region.name == run_format::command_region) {
                commands.push_back(&region);
            }
        }
    }
    return commands.empty() ? std::nullopt : std::optional(summarise(commands));
}

std::int64_t epochs(const RunRecord& run) {
    if (imported_metrics(run) != nullptr) {
        return static_cast<std::int64_t>(json_number(run.factors, "epochs").value_or(0));
    }
    std::set<std::int64_t> ended, open;
    for (const HostRecord& host : run.hosts) {
        for (const RegionRecord& region : host.regions) {
            if (region.name == "epoch") {
                (region.open ? open : ended).insert(region.index);
            }
        }
    }
    return std::ranges::count_if(ended, [&](std::int64_t index) { return !open.contains(index); });
}

std::string method_text(const RegionSummary& summary) {
    return summary.energy_method + (summary.simulated ? ", simulated" : "");
}

std::string factor_text(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string factors_text(const nlohmann::json& factors) {
    std::string text;
    for (const auto& [key, value] : factors.items()) {
        text += (text.empty() ? "" : " ") + key + "=" + factor_text(value);
    }
    return text;
}

}  // namespace joulemark::store
