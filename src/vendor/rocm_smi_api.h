// SPDX-License-Identifier: Apache-2.0
//
// The part of AMD's ROCm SMI library that Joulemark calls, declared here so that no ROCm is needed to build.
// tests/sensors/rocm_header_test.cpp holds it against AMD's own header where Debian's librocm-smi-dev is
// installed. Clocks are left out: their structure changed between releases without a version to tell.
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulemark::rocm::api {

using Status = int;  // an enumeration in AMD's header
inline constexpr Status success = 0;
inline constexpr Status not_supported = 2;
inline constexpr Status permission = 4;
inline constexpr Status function_missing = -1;  // ours: the library lacks the function

inline constexpr int memory_vram = 0;
inline constexpr std::uint32_t temperature_edge = 0;
inline constexpr std::uint32_t temperature_junction = 1;
inline constexpr int temperature_current = 0;

// Every function, once: X(member, symbol, signature). Only the first block must exist.
#define JOULEMARK_ROCM_REQUIRED(X)                                                                          \
    X(init, "rsmi_init", Status(std::uint64_t))                                                             \
    X(shut_down, "rsmi_shut_down", Status())                                                                \
    X(device_count, "rsmi_num_monitor_devices", Status(std::uint32_t*))

#define JOULEMARK_ROCM_OPTIONAL(X)                                                                          \
    X(name, "rsmi_dev_name_get", Status(std::uint32_t, char*, std::size_t))                                 \
    X(unique_id, "rsmi_dev_unique_id_get", Status(std::uint32_t, std::uint64_t*))                           \
    X(pci_id, "rsmi_dev_pci_id_get", Status(std::uint32_t, std::uint64_t*))                                 \
    X(power_average, "rsmi_dev_power_ave_get", Status(std::uint32_t, std::uint32_t, std::uint64_t*))        \
    X(power_any, "rsmi_dev_power_get", Status(std::uint32_t, std::uint64_t*, int*)) /* ROCm 6 and newer */  \
    X(energy, "rsmi_dev_energy_count_get", Status(std::uint32_t, std::uint64_t*, float*, std::uint64_t*))   \
    X(power_cap, "rsmi_dev_power_cap_get", Status(std::uint32_t, std::uint32_t, std::uint64_t*))            \
    X(power_cap_range, "rsmi_dev_power_cap_range_get",                                                      \
      Status(std::uint32_t, std::uint32_t, std::uint64_t*, std::uint64_t*)) /* maximum, then minimum */     \
    X(memory_total, "rsmi_dev_memory_total_get", Status(std::uint32_t, int, std::uint64_t*))                \
    X(memory_used, "rsmi_dev_memory_usage_get", Status(std::uint32_t, int, std::uint64_t*))                 \
    X(memory_busy, "rsmi_dev_memory_busy_percent_get", Status(std::uint32_t, std::uint32_t*))               \
    X(busy, "rsmi_dev_busy_percent_get", Status(std::uint32_t, std::uint32_t*))                             \
    X(temperature, "rsmi_dev_temp_metric_get", Status(std::uint32_t, std::uint32_t, int, std::int64_t*))

template <typename Signature>
using Function = Signature*;

struct Table {
#define JOULEMARK_ROCM_MEMBER(member, symbol, ...) Function<__VA_ARGS__> member = nullptr;
    JOULEMARK_ROCM_REQUIRED(JOULEMARK_ROCM_MEMBER)
    JOULEMARK_ROCM_OPTIONAL(JOULEMARK_ROCM_MEMBER)
#undef JOULEMARK_ROCM_MEMBER
};

}  // namespace joulemark::rocm::api
