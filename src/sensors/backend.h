// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sensors/catalog.h"
#include "sensors/file_tree.h"
#include "sensors/visible_devices.h"

namespace joulemark::sensors {

/// What discovery hands to each backend in turn.
struct Discovery {
    const Options& options;
    const FileTree& files;
    const Environment& environment;
    Machine& machine;

    bool has(const std::string& id) const;
    /// Adds a device unless one of that id exists.
    void add(Device device);
    /// Takes a source into use and reports each of its metrics. `reason` tells of one metric why it is used,
    /// or what it means.
    void use(std::unique_ptr<Source> source, const std::function<std::string(Metric)>& reason);
    void use(std::unique_ptr<Source> source, const std::string& reason);
    /// Reports what is not used.
    void available(std::string name, std::string quantity, std::string scope, std::string reason);
    void unavailable(std::string name, std::string quantity, std::string scope, Failure failure);
};

/// A backend adds devices, sources and reports to the machine: one file each, listed in catalog.cpp.
using Backend = void (*)(Discovery&);

void discover_nvml(Discovery& discovery);
void discover_rocm(Discovery& discovery);
void discover_rapl(Discovery& discovery);
void discover_perf_rapl(Discovery& discovery);
void discover_hwmon(Discovery& discovery);
void discover_acpi_power(Discovery& discovery);
void discover_pm_counters(Discovery& discovery);
void discover_ipmi(Discovery& discovery);
void discover_proc(Discovery& discovery);
void discover_cgroup(Discovery& discovery);
void discover_network(Discovery& discovery);
void discover_disk(Discovery& discovery);
void discover_cpu_estimate(Discovery& discovery);

/// Every backend in the order in which the catalogue asks them, over any tree and environment.
Machine discover(const Options& options, const FileTree& files, const Environment& environment);

}  // namespace joulemark::sensors
