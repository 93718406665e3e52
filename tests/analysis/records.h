// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/units.h"
#include "sensors/metric.h"
#include "store/model.h"

/// Run records made by hand, as the store would load them.
namespace joulemark::analysis {

inline store::DeviceMetrics gpu(const std::string& device, double energy_j, double duration_s) {
    store::DeviceMetrics metrics;
    metrics.device = device;
    metrics.component = "gpu";
    metrics.energy_counter_j = energy_j;
    metrics.energy_integrated_j = energy_j * 1.01;
    metrics.energy_protocol_j = energy_j * 1.02;
    metrics.energy_j = energy_j;
    metrics.energy_method = "counter";
    metrics.energy_bound_j = energy_j * 0.001;
    metrics.mean_power_w = energy_j / duration_s;
    metrics.gpu_busy_pct = 90;
    metrics.gpu_memory_util_pct = 40;
    metrics.covered_s = duration_s;
    metrics.samples = static_cast<std::int64_t>(duration_s * 10);
    return metrics;
}

inline store::DeviceMetrics component(const std::string& device, const std::string& name, double energy_j,
                                      double duration_s) {
    store::DeviceMetrics metrics;
    metrics.device = device;
    metrics.component = name;
    metrics.energy_counter_j = energy_j;
    metrics.energy_j = energy_j;
    metrics.energy_method = "counter";
    metrics.covered_s = duration_s;
    return metrics;
}

inline store::RegionRecord region(const std::string& host, const std::string& name, std::int64_t index,
                                  double start_s, double end_s) {
    store::RegionRecord record;
    record.host = host;
    record.name = name;
    record.index = index;
    record.start_ns = nanoseconds(start_s);
    record.end_ns = nanoseconds(end_s);
    record.source = name.starts_with("joulemark.") ? "meter" : "socket";
    return record;
}

/// The names by which the meter writes metrics into run.json.
inline nlohmann::json metric_names(std::initializer_list<sensors::Metric> metrics) {
    nlohmann::json names = nlohmann::json::array();
    for (const sensors::Metric metric : metrics) {
        names.push_back(sensors::info(metric).name);
    }
    return names;
}

/// run.json of a host with `gpus` V100s, a CPU package with its DRAM, and a source for each.
inline nlohmann::json host_json(const std::string& host, int gpus, bool cpu = true) {
    using nlohmann::json;
    json devices = json::array();
    json sources = json::array();
    for (int i = 0; i < gpus; ++i) {
        const std::string id = "gpu" + std::to_string(i);
        devices.push_back({{"device", id}, {"component", "gpu"}, {"name", "V100"}});
        sources.push_back({{"source", "nvml.energy"},
                           {"device", id},
                           {"metrics", metric_names({sensors::Metric::gpu_energy_j})},
                           {"method", "counter"},
                           {"scope", "gpu board"},
                           {"origin", "nvmlDeviceGetTotalEnergyConsumption"},
                           {"period_s", 0.1},
                           {"native_period_s", 0.02},
                           {"accuracy_pct", 5},
                           {"accuracy_note", "stated for the board"}});
    }
    if (cpu) {
        for (const char* name : {"cpu", "dram"}) {
            const std::string id = std::string(name) + "0";
            devices.push_back({{"device", id}, {"component", name}, {"name", "package 0"}});
            sources.push_back({{"source", "rapl"},
                               {"device", id},
                               {"metrics", metric_names({sensors::Metric::cpu_energy_j})},
                               {"method", "counter"},
                               {"scope", "cpu package"},
                               {"period_s", 0.1},
                               {"native_period_s", nullptr}});
        }
    }
    return {{"host", host}, {"devices", devices}, {"sources", sources}, {"simulated", false}};
}

/// A run of one host: `epochs` of `epoch_s`, each GPU at `gpu_w`, the CPU at 100 W, its DRAM at 10 W; two
/// seconds before the first epoch and one after the last.
inline store::RunRecord run_record(const std::string& name, nlohmann::json factors, double epoch_s,
                                   int gpus = 2, double gpu_w = 200, int epochs = 2) {
    store::RunRecord record;
    record.run = name;
    record.status = "ok";
    record.factors = std::move(factors);
    record.expected_hosts = {"node0"};
    store::HostRecord host;
    host.host = "node0";
    host.run_json = host_json(host.host, gpus);
    host.run_json["factors"] = record.factors;
    host.end_json = nlohmann::json{{"exit_status", 0}, {"meter", {{"achieved_hz", {{"nvml.energy", 9.9}}}}}};
    const auto metered = [&](store::RegionRecord window) {
        const double duration = window.duration_s();
        for (int i = 0; i < gpus; ++i) {
            window.devices.push_back(gpu("gpu" + std::to_string(i), gpu_w * duration, duration));
        }
        window.devices.push_back(component("cpu0", "cpu", 100 * duration, duration));
        window.devices.push_back(component("dram0", "dram", 10 * duration, duration));
        return window;
    };
    host.regions.push_back(metered(region("node0", "joulemark.command", 0, 0, epochs * epoch_s + 3)));
    for (int i = 0; i < epochs; ++i) {
        auto epoch = metered(region("node0", "epoch", i, 2 + i * epoch_s, 2 + (i + 1) * epoch_s));
        epoch.samples = 1000;
        epoch.updates = 20;
        host.regions.push_back(std::move(epoch));
    }
    record.hosts.push_back(std::move(host));
    return record;
}

/// A row of another tool's table.
inline store::RunRecord imported_record(const std::string& name, nlohmann::json factors,
                                        nlohmann::json metrics) {
    store::RunRecord record;
    record.run = name;
    record.status = "ok";
    record.factors = factors;
    record.expected_hosts = {"imported"};
    store::HostRecord host;
    host.host = "imported";
    host.run_json = {{"host", "imported"}, {"factors", factors}, {"imported", {{"metrics", metrics}}}};
    host.end_json = nlohmann::json::object();
    record.hosts.push_back(std::move(host));
    return record;
}

}  // namespace joulemark::analysis
