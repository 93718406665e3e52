// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sensors/backend.h"
#include "vendor/nvml.h"

namespace joulemark::sensors {

/// What the power readings of a GPU mean: NVIDIA changed it from one generation to the next.
struct PowerMeaning {
    bool default_is_average =
        false;                    ///< nvmlDeviceGetPowerUsage gives a mean over 1 s, not a momentary value
    bool module_counter = false;  ///< the energy counter covers the module, CPU and memory too (Grace-Hopper)
    std::string usage;            ///< of nvmlDeviceGetPowerUsage, in words
};
PowerMeaning power_meaning(const std::string& name, unsigned architecture);

/// Sources and reports of GPUs that answer, and reports of those that do not. Separate from finding the
/// library, so that tests can hand in any devices.
void add_nvml_gpus(Discovery& discovery, std::span<const nvml::Device> gpus,
                   std::span<const std::pair<int, Failure>> failures, bool simulated);

/// GPU performance monitoring of one GPU (Hopper and newer), or nothing, with the reason reported.
void add_nvml_gpm(Discovery& discovery, const nvml::Device& gpu, unsigned architecture, bool simulated);

}  // namespace joulemark::sensors
