// SPDX-License-Identifier: Apache-2.0
//
// Cray's power counters of a node, /sys/cray/pm_counters: "59868 J 1522781893016236 us", ten times a second.
// The node's counter contains all others; of CPU and memory they stand in where RAPL gives nothing.
#include <algorithm>

#include "sensors/backend.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* directory = "sys/cray/pm_counters";

struct PmCounter {
    const char* file;
    const char* device;
    const char* component;
    File run_file;
    Metric metric;
    const char* scope;
    double max_power_w;
};
constexpr PmCounter counters[] = {
    {"energy", "node", "node", File::node, Metric::node_energy_j, "node", 20000},
    {"cpu_energy", "cpu", "cpu", File::cpu, Metric::cpu_energy_j, "cpu package", 4000},
    {"memory_energy", "dram", "dram", File::cpu, Metric::cpu_energy_j, "dram", 2000},
};

bool measured_already(const Machine& machine, const PmCounter& counter) {
    return std::ranges::any_of(machine.sources, [&](const auto& source) {
        return source->info().scope == counter.scope && source->info().metrics.front() == counter.metric;
    });
}

}  // namespace

void discover_pm_counters(Discovery& discovery) {
    const FileTree& files = discovery.files;
    if (discovery.machine.simulated || !files.exists(directory)) {
        return;  // a file of one vendor's machines: not worth a line elsewhere
    }
    for (const PmCounter& counter : counters) {
        const std::string path = fmt::format("{}/{}", directory, counter.file);
        const std::string name = fmt::format("pm_counters {}", counter.device);
        auto opened = open_number(files, path);
        if (const auto* refusal = std::get_if<Refusal>(&opened)) {
            discovery.unavailable(name, "energy", counter.scope, {refusal->reason, ""});
            continue;
        }
        if (measured_already(discovery.machine, counter)) {
            discovery.available(name, "energy", counter.scope, "RAPL measures the same, and more often");
            continue;
        }
        discovery.add(
            {.id = counter.device, .file = counter.run_file, .name = "", .component = counter.component});
        SourceInfo info;
        info.name = "pm_counters";
        info.device = counter.device;
        info.metrics = {counter.metric};
        info.method = "counter";
        info.scope = counter.scope;
        info.origin = files.shown(path);
        info.native_period_s = 0.1;
        const CounterModel model{
            .modulus = 0, .units_per_joule = 1, .max_power_w = counter.max_power_w, .min_power_w = 1};
        discovery.use(
            std::make_unique<FileCounter>(std::move(info), std::get<OpenFile>(std::move(opened)), model),
            counter.metric == Metric::node_energy_j ? "energy counter of the whole node, before its power "
                                                      "supply; it contains CPU, memory and GPUs"
                                                    : "energy counter, where RAPL gives none");
    }
    for (const std::string& file : files.entries(directory)) {
        if (file.starts_with("accel") && file.ends_with("_energy")) {
            discovery.available("pm_counters " + file, "energy", "gpu module",
                                "the GPU's own counter is read instead");
        }
    }
}

}  // namespace joulemark::sensors
