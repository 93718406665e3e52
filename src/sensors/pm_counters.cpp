// SPDX-License-Identifier: Apache-2.0
//
// Cray's power counters of a node, /sys/cray/pm_counters: "59868 J 1522781893016236 us", ten times a second.
// The node's counter contains all others; those of CPU, memory and GPUs stand in where nothing nearer tells.
#include <algorithm>

#include "core/csv.h"
#include "sensors/backend.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* directory = "sys/cray/pm_counters";

struct PmCounter {
    std::string file;
    std::string device;
    const char* component;
    File run_file;
    Metric metric;
    const char* scope;
    double max_power_w;
};
const PmCounter counters[] = {
    {"energy", "node", "node", File::node, Metric::node_energy_j, "node", 20000},
    {"cpu_energy", "cpu", "cpu", File::cpu, Metric::cpu_energy_j, "cpu package", 4000},
    {"memory_energy", "dram", "dram", File::cpu, Metric::cpu_energy_j, "dram", 2000},
};

bool measured_already(const Machine& machine, const PmCounter& counter) {
    return std::ranges::any_of(machine.sources, [&](const auto& source) {
        return source->info().name != "pm_counters" && source->info().scope == counter.scope &&
               source->info().metrics.front() == counter.metric;
    });
}

/// A driver tells more of a GPU, and which of them the job may use.
bool gpus_known(const Machine& machine) {
    return machine.gpus_on_node > 0 || std::ranges::any_of(machine.devices, [](const Device& device) {
               return device.component == "gpu";
           });
}

/// "accel0_energy": of the first accelerator.
std::vector<PmCounter> accelerators(const FileTree& files) {
    constexpr std::string_view prefix = "accel", suffix = "_energy";
    std::vector<PmCounter> found;
    for (const std::string& file : files.entries(directory)) {
        if (file.starts_with(prefix) && file.ends_with(suffix)) {
            const auto number =
                file.substr(prefix.size(), file.size() - std::min(file.size(), prefix.size() + suffix.size()));
            if (csv::integer(number).value_or(-1) >= 0) {
                found.push_back(
                    {file, "gpu" + number, "gpu", File::gpu, Metric::gpu_energy_j, "gpu module", 4000});
            }
        }
    }
    return found;
}

void use(Discovery& discovery, const PmCounter& counter, const std::string& reason) {
    const std::string path = fmt::format("{}/{}", directory, counter.file);
    const std::string name = fmt::format("pm_counters {}", counter.device);
    auto opened = open_number(discovery.files, path);
    if (const auto* refusal = std::get_if<Refusal>(&opened)) {
        discovery.unavailable(name, "energy", counter.scope, {refusal->reason, ""});
        return;
    }
    if (measured_already(discovery.machine, counter)) {
        discovery.available(name, "energy", counter.scope, "RAPL measures the same, and more often");
        return;
    }
    discovery.add(
        {.id = counter.device, .file = counter.run_file, .name = "", .component = counter.component});
    SourceInfo info;
    info.name = "pm_counters";
    info.device = counter.device;
    info.metrics = {counter.metric};
    info.method = "counter";
    info.scope = counter.scope;
    info.origin = discovery.files.shown(path);
    info.native_period_s = 0.1;
    const CounterModel model{
        .modulus = 0, .units_per_joule = 1, .max_power_w = counter.max_power_w, .min_power_w = 1};
    discovery.use(std::make_unique<FileCounter>(std::move(info), std::get<OpenFile>(std::move(opened)), model),
                  reason);
}

}  // namespace

void discover_pm_counters(Discovery& discovery) {
    const FileTree& files = discovery.files;
    if (discovery.machine.simulated || !files.exists(directory)) {
        return;  // a file of one vendor's machines: not worth a line elsewhere
    }
    for (const PmCounter& counter : counters) {
        use(discovery, counter,
            counter.metric == Metric::node_energy_j
                ? "energy counter of the whole node, before its power supply; it contains CPU, memory and GPUs"
                : "energy counter, where RAPL gives none");
    }
    const bool known = gpus_known(discovery.machine);
    for (const PmCounter& counter : accelerators(files)) {
        if (known) {
            discovery.available("pm_counters " + counter.file, "energy", counter.scope,
                                "the GPU's own counter is read instead");
        } else {
            use(discovery, counter, "energy counter of the accelerator's module, where no GPU driver answers");
        }
    }
}

}  // namespace joulemark::sensors
