// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vendor/nvml.h"

namespace joulemark::sensors {

/// What one fake GPU answers; a call whose status is set fails with it.
struct FakeGpu {
    std::string name = "NVIDIA H200";
    std::string uuid = "GPU-0";
    std::string pci_bus_id = "00000000:1B:00.0";
    unsigned architecture = nvml::api::architecture_hopper;
    bool mig = false;
    unsigned power_mw = 300'000;
    unsigned instant_mw = 310'000;
    unsigned average_mw = 300'000;
    unsigned long long energy_mj = 1'000'000;
    double sm_util = 42;  ///< NaN: the counters have not refreshed since the sample before
    bool gpm = true;
    unsigned processes = 0;               ///< that compute on it
    std::optional<unsigned long long> ecc = {};  ///< corrected errors; ten times fewer were not
    std::map<std::string, nvml::api::Return> fails = {};  ///< call -> return code

    nvml::api::Return status(const char* call) const {
        const auto found = fails.find(call);
        return found == fails.end() ? nvml::api::success : found->second;
    }
    nvml::api::Device handle() { return reinterpret_cast<nvml::api::Device>(this); }
};

/// A table of functions that answer from the FakeGpu behind each handle.
nvml::api::Table fake_table();

/// Samples of GPM that are allocated and not yet freed.
int live_gpm_samples();

}  // namespace joulemark::sensors
