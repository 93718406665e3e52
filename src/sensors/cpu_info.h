// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sensors/file_tree.h"

namespace joulemark::sensors {

/// What /proc/cpuinfo tells.
struct CpuInfo {
    std::string vendor;  ///< "GenuineIntel", "AuthenticAMD", "" on other architectures
    std::string model;   ///< "AMD EPYC 7742 64-Core Processor"
    int sockets = 1;
    int cpus = 0;
    bool virtual_machine = false;
};
CpuInfo read_cpu_info(const FileTree& files);

}  // namespace joulemark::sensors
