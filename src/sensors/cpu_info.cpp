// SPDX-License-Identifier: Apache-2.0
#include "sensors/cpu_info.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace joulemark::sensors {

CpuInfo read_cpu_info(const FileTree& files) {
    CpuInfo cpu;
    std::set<std::string> packages;
    std::istringstream lines(files.text("proc/cpuinfo").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        const std::string key = line.substr(0, line.find_last_not_of(" \t", colon == 0 ? 0 : colon - 1) + 1);
        const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
        if (key == "processor") {
            ++cpu.cpus;
        } else if (key == "vendor_id") {
            cpu.vendor = value;
        } else if (key == "model name") {
            cpu.model = value;
        } else if (key == "physical id") {
            packages.insert(value);
        } else if (key == "flags") {
            cpu.virtual_machine = (" " + value + " ").find(" hypervisor ") != std::string::npos;
        }
    }
    cpu.sockets = std::max<int>(1, static_cast<int>(packages.size()));
    return cpu;
}

}  // namespace joulemark::sensors
