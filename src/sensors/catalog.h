// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "sensors/source.h"

namespace joulemark::sensors {

/// One line of `joulemark doctor`: a sensor of this machine, in use or not, and why.
struct SensorReport {
    std::string name;      ///< "nvml.energy gpu0", "rapl package-0"
    std::string quantity;  ///< "energy", "power", "utilisation", "memory", ...
    std::string scope, method, unit;
    std::string status;       ///< "used" | "available" (works, another is preferred) | "unavailable"
    std::string reason;       ///< why it is used, not preferred, or unavailable
    std::string remedy = {};  ///< what the user can do, "" when nothing
    std::optional<double> update_period_s = {};  ///< measured, only by doctor
    std::optional<double> read_latency_s = {};   ///< measured, only by doctor
};

struct Options {
    std::filesystem::path root = "/";  ///< all file-system sensors read below it: fixture trees in tests
    bool estimate_cpu = false;         ///< --estimate cpu
    bool all_devices = false;          ///< doctor: every GPU, not only those the job may use
};

/// The sensors of this machine. Sources borrow from the vendor library, which the machine keeps open.
struct Machine {
    std::shared_ptr<void> vendor;  ///< keeps the libraries loaded: first, so that it outlives the sources
    std::vector<Device> devices;
    std::vector<std::unique_ptr<Source>> sources;
    std::vector<SensorReport> reports;
    std::vector<std::string> warnings;  ///< degraded discovery, in words
    std::shared_ptr<Clock> clock;       ///< the simulated GPUs' clock where they are in use, else monotonic
    bool simulated = false;
    std::size_t gpus_on_node = 0;  ///< before the job's visibility was applied
    std::string visibility_source;  ///< what said which GPUs the job may use: "CUDA_VISIBLE_DEVICES=0,1"
    std::string driver_version;     ///< "" without an NVIDIA driver
};

/// Asks every backend in turn; one that fails costs only itself. Never throws for a missing sensor.
Machine discover(const Options& options);

}  // namespace joulemark::sensors
