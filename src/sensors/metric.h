// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace joulemark::sensors {

/// Which run file a metric is written to: gpu.csv, cpu.csv or node.csv.
enum class File : std::uint8_t { gpu, cpu, node };

/// How a metric behaves between two samples.
enum class Behaviour : std::uint8_t {
    gauge,    ///< a momentary value, held until the next sample; averaged over time
    counter,  ///< accumulates, already unwrapped by its source; a difference over time is what counts
    flags,    ///< a bit mask, kept as text
};

/// Every quantity a source can deliver. A new one is a row here and in metric_table.
enum class Metric : std::uint8_t {
    gpu_power_w,
    gpu_power_instant_w,
    gpu_power_average_w,
    gpu_memory_power_w,
    gpu_module_power_w,
    gpu_energy_j,
    gpu_busy_pct,
    gpu_memory_busy_pct,
    gpu_memory_used_bytes,
    gpu_sm_clock_mhz,
    gpu_memory_clock_mhz,
    gpu_temperature_c,
    gpu_power_limit_w,
    gpu_throttle_reasons,
    gpu_ecc_corrected_errors,
    gpu_ecc_uncorrected_errors,
    gpu_sm_util_pct,
    gpu_sm_occupancy_pct,
    gpu_tensor_pct,
    gpu_dram_pct,
    gpu_pcie_tx_bytes_per_s,
    gpu_pcie_rx_bytes_per_s,
    gpu_nvlink_tx_bytes_per_s,
    gpu_nvlink_rx_bytes_per_s,
    cpu_energy_j,
    cpu_power_w,
    cpu_busy_pct,
    cpu_process_s,
    node_memory_used_bytes,
    node_cgroup_memory_bytes,
    node_energy_j,
    node_power_w,
    node_ethernet_rx_bytes,
    node_ethernet_tx_bytes,
    node_infiniband_rx_bytes,
    node_infiniband_tx_bytes,
    node_disk_read_bytes,
    count_,
};

inline constexpr std::size_t metric_count = static_cast<std::size_t>(Metric::count_);

/// One metric described as data: `name` is its column in the run file, unit included.
struct MetricInfo {
    Metric metric;
    std::string_view name;
    File file;
    Behaviour behaviour;
    std::string_view description;
};

/// The row of a metric. Order of the enumeration.
const MetricInfo& info(Metric metric);
std::optional<Metric> metric_named(File file, std::string_view name);

/// Whether a column of this name tells the energy of its device: its counter, or its power (not a part's, nor
/// a limit). Such names mean the same in every file.
bool tells_energy(std::string_view name);

/// The two halves of a column's name, for people: "power instant" and "W" of power_instant_w.
std::string quantity(Metric metric);
std::string_view unit(Metric metric);

}  // namespace joulemark::sensors
