// SPDX-License-Identifier: Apache-2.0
#include "sensors/catalog.h"

#include <algorithm>
#include <array>

#include "sensors/backend.h"

namespace joulemark::sensors {
namespace {

// GPUs first: whether they are simulated decides on the clock. Of the sensors of one thing the best first:
// the later ones stand in only for what is missing, and the estimate for what nothing measures.
constexpr std::array backends{
    discover_nvml,       discover_rocm,        discover_rapl,         discover_perf_rapl, discover_hwmon,
    discover_acpi_power, discover_pm_counters, discover_ipmi,         discover_proc,      discover_cgroup,
    discover_network,    discover_disk,        discover_cpu_estimate,
};

std::string report_name(const SourceInfo& info) {
    return fmt::format("{} {}", info.name, info.device);
}

}  // namespace

bool Discovery::has(const std::string& id) const {
    return std::ranges::find(machine.devices, id, &Device::id) != machine.devices.end();
}

void Discovery::add(Device device) {
    if (!has(device.id)) {
        machine.devices.push_back(std::move(device));
    }
}

void Discovery::use(std::unique_ptr<Source> source, const std::function<std::string(Metric)>& reason) {
    const SourceInfo& info = source->info();
    for (const Metric metric : info.metrics) {
        machine.reports.push_back({.name = report_name(info),
                                   .quantity = quantity(metric),
                                   .scope = info.scope,
                                   .method = info.method,
                                   .unit = std::string(unit(metric)),
                                   .status = "used",
                                   .reason = reason(metric)});
    }
    machine.sources.push_back(std::move(source));
}

void Discovery::use(std::unique_ptr<Source> source, const std::string& reason) {
    use(std::move(source), [&reason](Metric) { return reason; });
}

void Discovery::available(std::string name, std::string quantity, std::string scope, std::string reason) {
    SensorReport report;
    report.name = std::move(name);
    report.quantity = std::move(quantity);
    report.scope = std::move(scope);
    report.status = "available";
    report.reason = std::move(reason);
    machine.reports.push_back(std::move(report));
}

void Discovery::unavailable(std::string name, std::string quantity, std::string scope, Failure failure) {
    available(std::move(name), std::move(quantity), std::move(scope), std::move(failure.reason));
    machine.reports.back().status = "unavailable";
    machine.reports.back().remedy = std::move(failure.remedy);
}

Machine discover(const Options& options, const FileTree& files, const Environment& environment) {
    Machine machine;
    machine.clock = std::make_shared<MonotonicClock>();
    Discovery discovery{options, files, environment, machine};
    for (const Backend backend : backends) {
        // Sensors of the real machine do not follow virtual time: what they read would be shares of nothing.
        if (!machine.clock->simulated()) {
            backend(discovery);
        }
    }
    if (machine.clock->simulated()) {
        discovery.unavailable(
            "host", "energy", "node",
            {"the GPUs are simulated in virtual time, which sensors of the real machine do not follow", ""});
    }
    return machine;
}

Machine discover(const Options& options) {
    return discover(options, FileTree(options.root), process_environment());
}

}  // namespace joulemark::sensors
