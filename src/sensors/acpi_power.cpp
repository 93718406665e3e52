// SPDX-License-Identifier: Apache-2.0
//
// ACPI power meters (hwmon chips called "power_meter"): a node's input, or the rails of a Grace superchip,
// whose meters carry their names. Gauges in microwatts, averaged over power1_average_interval.
#include <algorithm>

#include "sensors/backend.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* hwmon = "sys/class/hwmon";
constexpr double watts_per_microwatt = 1e-6;

bool has_scope(const Machine& machine, std::string_view scope, Metric metric) {
    return std::ranges::any_of(machine.sources, [&](const auto& source) {
        const SourceInfo& info = source->info();
        return info.scope == scope && std::ranges::find(info.metrics, metric) != info.metrics.end();
    });
}

/// What a meter measures, and why it is not used where it is not.
struct Meter {
    std::string device;
    std::string component;
    std::string scope;
    File file = File::node;
    Metric metric = Metric::node_power_w;
    std::string refused;
};

Meter classify(const Machine& machine, const std::string& rail) {
    if (rail.empty() || rail == "Power Meter") {
        Meter meter{.device = "node", .component = "node", .scope = "node wall", .refused = ""};
        if (has_scope(machine, meter.scope, Metric::node_power_w)) {
            meter.refused = "a second meter without a name: which one is the node's cannot be told";
        }
        return meter;
    }
    const std::string socket(1, rail.back());
    if (rail.starts_with("Grace Power Socket")) {
        Meter meter{.device = "cpu" + socket,
                    .component = "cpu",
                    .scope = "cpu package",
                    .file = File::cpu,
                    .metric = Metric::cpu_power_w,
                    .refused = ""};
        if (has_scope(machine, "gpu module", Metric::gpu_energy_j)) {
            meter.refused = "contained in the GPU module's energy counter";
        }
        return meter;
    }
    return {.device = rail,
            .component = "",
            .scope = rail,
            .refused = "contains, or is contained in, a rail that is used"};
}

}  // namespace

void discover_acpi_power(Discovery& discovery) {
    if (discovery.machine.simulated) {
        return;
    }
    const FileTree& files = discovery.files;
    for (const std::string& chip : files.entries(hwmon)) {
        const std::string path = fmt::format("{}/{}", hwmon, chip);
        if (files.line(path + "/name") != "power_meter") {
            continue;
        }
        const std::string rail = files.line(path + "/device/power1_oem_info")
                                     .value_or(files.line(path + "/power1_oem_info").value_or(""));
        Meter meter = classify(discovery.machine, rail);
        const std::string name = fmt::format("acpi {}", meter.device);
        std::string file = path + "/power1_average";
        if (!files.exists(file)) {
            file = path + "/device/power1_average";
        }
        auto opened = open_number(files, file);
        if (const auto* refusal = std::get_if<Refusal>(&opened)) {
            discovery.unavailable(
                name, "power", meter.scope,
                {refusal->reason, refusal->permission ? "sudo chmod o+r " + files.shown(file) : ""});
            continue;
        }
        if (!meter.refused.empty()) {
            discovery.available(name, "power", meter.scope, meter.refused);
            continue;
        }
        discovery.add({.id = meter.device, .file = meter.file, .name = rail, .component = meter.component});
        SourceInfo info;
        info.name = "acpi";
        info.device = meter.device;
        info.metrics = {meter.metric};
        info.method = "sampled";
        info.scope = meter.scope;
        info.origin = files.shown(file);
        info.slow = true;  // a read asks the firmware, which may take milliseconds
        if (const auto interval_ms = files.number(path + "/power1_average_interval");
            interval_ms && *interval_ms > 0) {
            info.native_period_s = static_cast<double>(*interval_ms) * 1e-3;
        }
        discovery.use(
            std::make_unique<FileGauge>(std::move(info), std::get<OpenFile>(std::move(opened)),
                                        watts_per_microwatt),
            rail.empty() ? "ACPI power meter of the node" : fmt::format("ACPI power meter \"{}\"", rail));
    }
}

}  // namespace joulemark::sensors
