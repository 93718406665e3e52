// SPDX-License-Identifier: Apache-2.0
//
// The part of NVIDIA's management library (NVML) that Joulemark calls, declared here so that no CUDA
// toolkit is needed to build. tests/vendor/nvml_header_test.cpp holds every size, offset, constant and signature
// against NVIDIA's own nvml.h. Plain C types: the simulated library exports the same functions.
#pragma once

#include <cstdint>

namespace joulemark::nvml::api {

using Device = struct DeviceTag*;
using GpmSample = struct GpmSampleTag*;

using Return = int;
inline constexpr Return success = 0;
inline constexpr Return error_uninitialized = 1;
inline constexpr Return error_invalid_argument = 2;
inline constexpr Return error_not_supported = 3;
inline constexpr Return error_no_permission = 4;
inline constexpr Return error_not_found = 6;
inline constexpr Return error_insufficient_size = 7;
inline constexpr Return error_driver_not_loaded = 9;
inline constexpr Return error_timeout = 10;
inline constexpr Return error_function_not_found = 13;
inline constexpr Return error_gpu_is_lost = 15;
inline constexpr Return error_reset_required = 16;
inline constexpr Return error_operating_system = 17;
inline constexpr Return error_version_mismatch = 18;
inline constexpr Return error_no_data = 21;
inline constexpr Return error_unknown = 999;

struct Memory {
    unsigned long long total, free, used;  // bytes
};

struct Utilization {
    unsigned int gpu, memory;  // per cent
};

struct PciInfo {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

union Value {
    double as_double;
    int as_int;
    unsigned int as_unsigned;
    unsigned long as_unsigned_long;
    unsigned long long as_unsigned_long_long;
    long long as_long_long;
    unsigned short as_unsigned_short;
};

// Value types of FieldValue::value_type.
inline constexpr int type_double = 0;
inline constexpr int type_unsigned = 1;
inline constexpr int type_unsigned_long = 2;
inline constexpr int type_unsigned_long_long = 3;

struct FieldValue {
    unsigned int field_id;
    unsigned int scope_id;
    long long timestamp;     // microseconds since 1970
    long long latency_usec;
    int value_type;
    Return status;  // a return code of its own: the call can succeed while a field fails
    Value value;
};

inline constexpr unsigned int field_power_average = 185;  // mW, 1 s average
inline constexpr unsigned int field_power_instant = 186;  // mW
inline constexpr unsigned int power_scope_gpu = 0;        // scope_id of the power fields
inline constexpr unsigned int power_scope_module = 1;
inline constexpr unsigned int power_scope_memory = 2;

inline constexpr int clock_graphics = 0;
inline constexpr int clock_sm = 1;
inline constexpr int clock_memory = 2;

inline constexpr int temperature_gpu = 0;

inline constexpr unsigned int architecture_volta = 5;
inline constexpr unsigned int architecture_turing = 6;
inline constexpr unsigned int architecture_ampere = 7;
inline constexpr unsigned int architecture_ada = 8;
inline constexpr unsigned int architecture_hopper = 9;
inline constexpr unsigned int architecture_blackwell = 10;

inline constexpr std::uint64_t reason_gpu_idle = 0x1;
inline constexpr std::uint64_t reason_applications_clocks = 0x2;
inline constexpr std::uint64_t reason_sw_power_cap = 0x4;
inline constexpr std::uint64_t reason_hw_slowdown = 0x8;
inline constexpr std::uint64_t reason_sync_boost = 0x10;
inline constexpr std::uint64_t reason_sw_thermal = 0x20;
inline constexpr std::uint64_t reason_hw_thermal = 0x40;
inline constexpr std::uint64_t reason_hw_power_brake = 0x80;

// GPU performance monitoring (GPM), Hopper and newer.
inline constexpr unsigned int gpm_metrics_get_version = 1;
inline constexpr unsigned int gpm_support_version = 1;
inline constexpr unsigned int gpm_sm_util = 2;       // per cent
inline constexpr unsigned int gpm_sm_occupancy = 3;  // per cent
inline constexpr unsigned int gpm_any_tensor = 5;    // per cent
inline constexpr unsigned int gpm_dram_util = 10;    // per cent of the peak bandwidth
inline constexpr unsigned int gpm_pcie_tx = 20;      // MiB/s, from the GPU
inline constexpr unsigned int gpm_pcie_rx = 21;      // MiB/s, to the GPU
inline constexpr unsigned int gpm_nvlink_rx = 60;    // MiB/s, all links
inline constexpr unsigned int gpm_nvlink_tx = 61;    // MiB/s, all links
inline constexpr int gpm_metric_max = 210;      // of the library generation whose struct version is 1

struct ProcessInfo {  // only ever counted
    unsigned int pid;
    unsigned long long used_gpu_memory;
    unsigned int gpu_instance_id, compute_instance_id;
};

inline constexpr int ecc_corrected = 0;    // nvmlMemoryErrorType_t
inline constexpr int ecc_uncorrected = 1;
inline constexpr int ecc_since_boot = 0;   // nvmlEccCounterType_t: volatile

struct GpmMetric {
    unsigned int metric_id;
    Return status;
    double value;
    struct {
        char* short_name;
        char* long_name;
        char* unit;
    } metric_info;
};

struct GpmMetricsGet {
    unsigned int version;
    unsigned int num_metrics;
    GpmSample sample1;
    GpmSample sample2;
    // Newer libraries declare more; only the first num_metrics are touched.
    GpmMetric metrics[gpm_metric_max];
};

struct GpmSupport {
    unsigned int version;
    unsigned int is_supported_device;
};

// Every function, once: X(member, symbol, return type and parameters). Only the first block must exist.
#define JOULEMARK_NVML_REQUIRED(X)                                                           \
    X(init, "nvmlInit_v2", Return())                                                         \
    X(shutdown, "nvmlShutdown", Return())                                                    \
    X(device_count, "nvmlDeviceGetCount_v2", Return(unsigned int*))                          \
    X(device_by_index, "nvmlDeviceGetHandleByIndex_v2", Return(unsigned int, Device*))

#define JOULEMARK_NVML_OPTIONAL(X)                                                                          \
    X(driver_version, "nvmlSystemGetDriverVersion", Return(char*, unsigned int))                            \
    X(name, "nvmlDeviceGetName", Return(Device, char*, unsigned int))                                       \
    X(uuid, "nvmlDeviceGetUUID", Return(Device, char*, unsigned int))                                       \
    X(pci_info, "nvmlDeviceGetPciInfo_v3", Return(Device, PciInfo*))                                        \
    X(minor_number, "nvmlDeviceGetMinorNumber", Return(Device, unsigned int*))                              \
    X(architecture, "nvmlDeviceGetArchitecture", Return(Device, unsigned int*))                             \
    X(memory, "nvmlDeviceGetMemoryInfo", Return(Device, Memory*))                                           \
    X(power_usage, "nvmlDeviceGetPowerUsage", Return(Device, unsigned int*))                                \
    X(total_energy, "nvmlDeviceGetTotalEnergyConsumption", Return(Device, unsigned long long*))             \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors", Return(Device, int, int, unsigned long long*))             \
    X(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                         \
      Return(Device, unsigned int*, ProcessInfo*))                                                          \
    X(utilization, "nvmlDeviceGetUtilizationRates", Return(Device, Utilization*))                           \
    X(clock, "nvmlDeviceGetClockInfo", Return(Device, int, unsigned int*))                                  \
    X(max_clock, "nvmlDeviceGetMaxClockInfo", Return(Device, int, unsigned int*))                           \
    X(temperature, "nvmlDeviceGetTemperature", Return(Device, int, unsigned int*))                          \
    X(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", Return(Device, unsigned long long*))   \
    X(field_values, "nvmlDeviceGetFieldValues", Return(Device, int, FieldValue*))                           \
    X(power_limit, "nvmlDeviceGetPowerManagementLimit", Return(Device, unsigned int*))                      \
    X(power_limit_range, "nvmlDeviceGetPowerManagementLimitConstraints",                                    \
      Return(Device, unsigned int*, unsigned int*))                                                         \
    X(power_limit_default, "nvmlDeviceGetPowerManagementDefaultLimit", Return(Device, unsigned int*))       \
    X(power_limit_enforced, "nvmlDeviceGetEnforcedPowerLimit", Return(Device, unsigned int*))               \
    X(set_power_limit, "nvmlDeviceSetPowerManagementLimit", Return(Device, unsigned int))                   \
    X(set_locked_clocks, "nvmlDeviceSetGpuLockedClocks", Return(Device, unsigned int, unsigned int))        \
    X(reset_locked_clocks, "nvmlDeviceResetGpuLockedClocks", Return(Device))                                \
    X(supported_memory_clocks, "nvmlDeviceGetSupportedMemoryClocks",                                        \
      Return(Device, unsigned int*, unsigned int*))                                                         \
    X(supported_graphics_clocks, "nvmlDeviceGetSupportedGraphicsClocks",                                    \
      Return(Device, unsigned int, unsigned int*, unsigned int*))                                           \
    X(mig_mode, "nvmlDeviceGetMigMode", Return(Device, unsigned int*, unsigned int*))                       \
    X(mig_device_count, "nvmlDeviceGetMaxMigDeviceCount", Return(Device, unsigned int*))                    \
    X(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex", Return(Device, unsigned int, Device*))             \
    X(gpm_support, "nvmlGpmQueryDeviceSupport", Return(Device, GpmSupport*))                                \
    X(gpm_sample_alloc, "nvmlGpmSampleAlloc", Return(GpmSample*))                                           \
    X(gpm_sample_free, "nvmlGpmSampleFree", Return(GpmSample))                                              \
    X(gpm_sample_get, "nvmlGpmSampleGet", Return(Device, GpmSample))                                        \
    X(gpm_metrics_get, "nvmlGpmMetricsGet", Return(GpmMetricsGet*))

// What the simulated library exports beside NVML, and nothing else does. Its GPUs follow either CLOCK_MONOTONIC or a virtual
// clock; times are in ns of that clock.
// A participant takes part in that clock: it advances only while all participants sleep, and only if one of
// them drives. `sim_sleep` returns 1 at the deadline, 0 when woken by `sim_wake` before.
#define JOULEMARK_NVML_SIMULATED(X)                                              \
    X(sim_clock_is_virtual, "joulemark_sim_clock_is_virtual", int())             \
    X(sim_now, "joulemark_sim_now_ns", std::int64_t())                           \
    X(sim_realtime, "joulemark_sim_realtime_ns", std::int64_t())                 \
    X(sim_join, "joulemark_sim_join", void*(int drives))                         \
    X(sim_sleep, "joulemark_sim_sleep", int(void* participant, std::int64_t deadline_ns)) \
    X(sim_wake, "joulemark_sim_wake", void(void* participant))                   \
    X(sim_leave, "joulemark_sim_leave", void(void* participant))

template <typename Signature>
using Function = Signature*;

struct Table {
#define JOULEMARK_NVML_MEMBER(member, symbol, ...) Function<__VA_ARGS__> member = nullptr;
    JOULEMARK_NVML_REQUIRED(JOULEMARK_NVML_MEMBER)
    JOULEMARK_NVML_OPTIONAL(JOULEMARK_NVML_MEMBER)
    JOULEMARK_NVML_SIMULATED(JOULEMARK_NVML_MEMBER)
#undef JOULEMARK_NVML_MEMBER
};

}  // namespace joulemark::nvml::api
