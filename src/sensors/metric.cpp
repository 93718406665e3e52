// SPDX-License-Identifier: Apache-2.0
#include "sensors/metric.h"

#include <algorithm>
#include <array>

namespace joulemark::sensors {
namespace {

using enum Metric;
using enum Behaviour;

constexpr std::array<MetricInfo, metric_count> metric_table{{
    {gpu_power_w, "power_w", File::gpu, gauge, "power, as the driver's default reading gives it"},
    {gpu_power_instant_w, "power_instant_w", File::gpu, gauge, "power, the freshest value of the sensor"},
    {gpu_power_average_w, "power_average_w", File::gpu, gauge,
     "power, averaged by the driver over about 1 s"},
    {gpu_memory_power_w, "memory_power_w", File::gpu, gauge,
     "power of the device memory, contained in the board's"},
    {gpu_module_power_w, "module_power_w", File::gpu, gauge,
     "power of the whole module (Grace-Hopper), CPU included"},
    {gpu_energy_j, "energy_j", File::gpu, counter,
     "energy counter of the board (of the module on Grace-Hopper)"},
    {gpu_busy_pct, "busy_pct", File::gpu, gauge, "share of time in which any kernel was resident"},
    {gpu_memory_busy_pct, "memory_busy_pct", File::gpu, gauge,
     "share of time in which the memory controller was busy"},
    {gpu_memory_used_bytes, "memory_used_bytes", File::gpu, gauge, "device memory in use"},
    {gpu_sm_clock_mhz, "sm_clock_mhz", File::gpu, gauge, "actual SM clock"},
    {gpu_memory_clock_mhz, "memory_clock_mhz", File::gpu, gauge, "actual memory clock"},
    {gpu_temperature_c, "temperature_c", File::gpu, gauge, "temperature of the chip"},
    {gpu_power_limit_w, "power_limit_w", File::gpu, gauge, "power limit enforced at this moment"},
    {gpu_throttle_reasons, "throttle_reasons", File::gpu, flags, "bit mask of nvmlClocksEventReasons"},
    {gpu_ecc_corrected_errors, "ecc_corrected_errors", File::gpu, gauge,
     "memory errors that ECC corrected, since the driver was loaded"},
    {gpu_ecc_uncorrected_errors, "ecc_uncorrected_errors", File::gpu, gauge,
     "memory errors that ECC found and could not correct, since the driver was loaded"},
    {gpu_sm_util_pct, "sm_util_pct", File::gpu, gauge, "SM activity (GPM, Hopper and newer)"},
    {gpu_sm_occupancy_pct, "sm_occupancy_pct", File::gpu, gauge,
     "resident warps of those the SMs can hold (GPM)"},
    {gpu_tensor_pct, "tensor_pct", File::gpu, gauge, "activity of the tensor cores (GPM)"},
    {gpu_dram_pct, "dram_pct", File::gpu, gauge, "device memory bandwidth in use (GPM)"},
    {gpu_pcie_tx_bytes_per_s, "pcie_tx_bytes_per_s", File::gpu, gauge, "PCIe traffic from the GPU (GPM)"},
    {gpu_pcie_rx_bytes_per_s, "pcie_rx_bytes_per_s", File::gpu, gauge, "PCIe traffic to the GPU (GPM)"},
    {gpu_nvlink_tx_bytes_per_s, "nvlink_tx_bytes_per_s", File::gpu, gauge,
     "NVLink traffic from the GPU (GPM)"},
    {gpu_nvlink_rx_bytes_per_s, "nvlink_rx_bytes_per_s", File::gpu, gauge, "NVLink traffic to the GPU (GPM)"},
    {cpu_energy_j, "energy_j", File::cpu, counter, "energy counter of the domain"},
    {cpu_power_w, "power_w", File::cpu, gauge, "power of the domain, where there is no counter"},
    {cpu_busy_pct, "busy_pct", File::cpu, gauge, "share of time in which the processors were not idle"},
    {cpu_process_s, "process_cpu_s", File::cpu, counter, "CPU time of the metered processes"},
    {node_memory_used_bytes, "memory_used_bytes", File::node, gauge,
     "host memory in use (total less available)"},
    {node_cgroup_memory_bytes, "cgroup_memory_bytes", File::node, gauge,
     "host memory charged to the job's cgroup"},
    {node_energy_j, "energy_j", File::node, counter, "energy counter of the whole node"},
    {node_power_w, "power_w", File::node, gauge, "wall power of the whole node"},
    {node_ethernet_rx_bytes, "ethernet_rx_bytes", File::node, counter,
     "bytes received by the network interfaces"},
    {node_ethernet_tx_bytes, "ethernet_tx_bytes", File::node, counter,
     "bytes sent by the network interfaces"},
    {node_infiniband_rx_bytes, "infiniband_rx_bytes", File::node, counter,
     "bytes received by the InfiniBand ports"},
    {node_infiniband_tx_bytes, "infiniband_tx_bytes", File::node, counter,
     "bytes sent by the InfiniBand ports"},
    {node_disk_read_bytes, "disk_read_bytes", File::node, counter, "bytes read from the node's own disks"},
}};

struct Unit {
    std::string_view suffix;
    std::string_view name;
};
constexpr std::array units{
    Unit{"_bytes_per_s", "bytes/s"},
    Unit{"_j", "J"},
    Unit{"_w", "W"},
    Unit{"_s", "s"},
    Unit{"_pct", "%"},
    Unit{"_c", "C"},
    Unit{"_mhz", "MHz"},
    Unit{"_bytes", "bytes"},
};

const Unit* unit_of(std::string_view column) {
    for (const Unit& candidate : units) {
        if (column.ends_with(candidate.suffix)) {
            return &candidate;
        }
    }
    return nullptr;
}

}  // namespace

const MetricInfo& info(Metric metric) {
    return metric_table[static_cast<std::size_t>(metric)];
}

std::optional<Metric> metric_named(File file, std::string_view name) {
    for (const MetricInfo& row : metric_table) {
        if (row.file == file && row.name == name) {
            return row.metric;
        }
    }
    return std::nullopt;
}

bool tells_energy(std::string_view name) {
    constexpr std::array energy{gpu_energy_j, cpu_energy_j, node_energy_j};
    constexpr std::array power{gpu_power_w, gpu_power_instant_w, gpu_power_average_w, cpu_power_w, node_power_w};
    const auto is_named = [&](Metric metric) { return info(metric).name == name; };
    return std::ranges::any_of(energy, is_named) || std::ranges::any_of(power, is_named);
}

std::string quantity(Metric metric) {
    std::string text(info(metric).name);
    if (const Unit* found = unit_of(text)) {
        text.resize(text.size() - found->suffix.size());
    }
    std::ranges::replace(text, '_', ' ');
    return text;
}

std::string_view unit(Metric metric) {
    const Unit* found = unit_of(info(metric).name);
    return found == nullptr ? "" : found->name;
}

}  // namespace joulemark::sensors
