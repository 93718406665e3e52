// SPDX-License-Identifier: Apache-2.0
//
// Power and energy inputs of hardware monitors. Which part of a machine a monitor sits on is known for few
// chips: AMD's amd_energy counts sockets, and stands in where RAPL gives nothing. Of the others `doctor`
// tells that they are there.
#include <algorithm>

#include "sensors/backend.h"
#include "sensors/file_source.h"

namespace joulemark::sensors {
namespace {

constexpr const char* hwmon = "sys/class/hwmon";
constexpr std::string_view socket_label = "Esocket";

/// amd_energy counts microjoules in 64 bits, cores first and then "Esocket0", "Esocket1".
void take_socket(Discovery& discovery, const std::string& file, const std::string& label) {
    const std::string id = "cpu" + label.substr(socket_label.size());
    const std::string name = "hwmon " + id;
    if (discovery.has(id)) {
        discovery.available(name, "energy", "cpu package", "RAPL gives the same counter and is used");
        return;
    }
    auto opened = open_number(discovery.files, file);
    if (const auto* refusal = std::get_if<Refusal>(&opened)) {
        discovery.unavailable(
            name, "energy", "cpu package",
            {refusal->reason, refusal->permission ? "sudo chmod o+r " + discovery.files.shown(file) : ""});
        return;
    }
    discovery.add({.id = id, .file = File::cpu, .name = label, .component = "cpu"});
    SourceInfo info;
    info.name = "hwmon";
    info.device = id;
    info.metrics = {Metric::cpu_energy_j};
    info.method = "counter";
    info.scope = "cpu package";
    info.origin = discovery.files.shown(file);
    const CounterModel model{.modulus = 0, .units_per_joule = 1e6, .max_power_w = 1000, .min_power_w = 0.1};
    discovery.use(
        std::make_unique<FileCounter>(std::move(info), std::get<OpenFile>(std::move(opened)), model),
        "energy counter of the socket (amd_energy)");
}

}  // namespace

void discover_hwmon(Discovery& discovery) {
    if (discovery.machine.simulated) {
        return;
    }
    const FileTree& files = discovery.files;
    for (const std::string& monitor : files.entries(hwmon)) {
        const std::string path = fmt::format("{}/{}", hwmon, monitor);
        const std::string chip = files.line(path + "/name").value_or("");
        if (chip == "power_meter") {
            continue;  // acpi_power.cpp's
        }
        for (const std::string& file : files.entries(path)) {
            const bool energy = file.starts_with("energy") && file.ends_with("_input");
            const bool power =
                file.starts_with("power") && (file.ends_with("_input") || file.ends_with("_average"));
            if (!energy && !power) {
                continue;
            }
            const std::string label =
                files.line(fmt::format("{}/{}_label", path, file.substr(0, file.find('_')))).value_or(file);
            if (chip == "amd_energy" && label.starts_with(socket_label)) {
                take_socket(discovery, path + "/" + file, label);
            } else if (chip != "amd_energy") {
                discovery.available(fmt::format("hwmon {}/{}", chip, label), energy ? "energy" : "power",
                                    "unknown",
                                    "what this monitor sits on is not known, so it is not added to anything");
            }
        }
    }
}

}  // namespace joulemark::sensors
