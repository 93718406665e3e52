// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sensors/metric.h"

namespace joulemark::sensors {

/// What stands for a value that could not be read.
inline constexpr double gap = std::numeric_limits<double>::quiet_NaN();

/// A thing that is metered: a GPU, a CPU package, a DRAM domain, the node.
struct Device {
    /// Names it in the run files: "gpu0", "cpu0" (package 0), "dram0", "cpu" (all cores), "node".
    std::string id;
    File file;
    std::string name;       ///< as the vendor calls it
    std::string component;  ///< key of energy_by_component_j: "gpu", "cpu", "dram", "node"
    int index = 0;          ///< the vendor's index on this node
    std::string uuid = {};
    std::string pci_bus_id = {};
    std::optional<std::uint64_t> memory_bytes = {};
    std::optional<double> power_limit_w = {}, power_limit_min_w = {}, power_limit_max_w = {};
    std::optional<double> sm_clock_max_mhz = {};
    bool simulated = false;
};

/// Where a number comes from; stored with the run and carried to every result (product.md, "Provenance").
struct SourceInfo {
    std::string name;             ///< "nvml", "nvml.energy", "rapl", "proc", "cgroup", "cpu-estimate"
    std::string device;           ///< Device::id
    std::vector<Metric> metrics;  ///< in the order `read` fills them
    std::string method;           ///< counter | sampled | estimated; "simulated" takes precedence
    std::string scope;   ///< gpu board | gpu module | cpu package | dram | node wall | process | node
    std::string origin;  ///< the file or the library call
    bool slow = false;   ///< a read takes long enough to delay others: gets a thread of its own
    std::optional<double> native_period_s;  ///< how often the sensor itself refreshes, where known
    std::optional<double> accuracy_pct;     ///< the vendor's stated accuracy, where known
    std::string accuracy_note;
};

/// What a counter went through, for the run's end.json.
struct CounterEvents {
    std::uint64_t wraps = 0;
    std::uint64_t resets = 0;
    std::uint64_t unknowable = 0;  ///< intervals so long that the number of wraps cannot be known
    std::uint64_t failed_reads = 0;
    std::uint64_t frozen = 0;  ///< times it stood still although power was drawn

    bool operator==(const CounterEvents&) const = default;
};

/// One backend's view of one device.
class Source {
  public:
    explicit Source(SourceInfo info) : info_(std::move(info)) {}
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    const SourceInfo& info() const { return info_; }

    /// Fills one value per metric of info(), SI units as the metric's name says; NaN is a gap (a failed or
    /// unsupported read), never 0 and never the last value. No allocation, no logging, no I/O but the read
    /// itself: called from the sampling loop. Never throws.
    virtual void read(std::span<double> values) noexcept = 0;

    virtual CounterEvents events() const { return {}; }

  private:
    SourceInfo info_;
};

}  // namespace joulemark::sensors
