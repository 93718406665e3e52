// SPDX-License-Identifier: Apache-2.0
//
// Our declarations of NVML against NVIDIA's own header. The look-alike library is built from the same
// declarations as the meter, so only this test can find a mistake in them.
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>
#include <nvml.h>

#include "vendor/nvml_api.h"

namespace joulemark::nvml::api {
namespace {

#define EXPECT_SAME_VALUE(ours, theirs) \
    EXPECT_EQ(static_cast<long long>(ours), static_cast<long long>(theirs))

#define EXPECT_SAME_SIZE(ours, theirs)       \
    EXPECT_EQ(sizeof(ours), sizeof(theirs)); \
    EXPECT_EQ(alignof(ours), alignof(theirs))

#define EXPECT_SAME_MEMBER(ours, our_member, theirs, their_member)         \
    EXPECT_EQ(offsetof(ours, our_member), offsetof(theirs, their_member)); \
    EXPECT_EQ(sizeof(ours{}.our_member), sizeof(theirs{}.their_member))

TEST(NvmlHeader, ReturnCodes) {
    EXPECT_SAME_VALUE(success, NVML_SUCCESS);
    EXPECT_SAME_VALUE(error_uninitialized, NVML_ERROR_UNINITIALIZED);
    EXPECT_SAME_VALUE(error_invalid_argument, NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_SAME_VALUE(error_not_supported, NVML_ERROR_NOT_SUPPORTED);
    EXPECT_SAME_VALUE(error_no_permission, NVML_ERROR_NO_PERMISSION);
    EXPECT_SAME_VALUE(error_not_found, NVML_ERROR_NOT_FOUND);
    EXPECT_SAME_VALUE(error_insufficient_size, NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_SAME_VALUE(error_driver_not_loaded, NVML_ERROR_DRIVER_NOT_LOADED);
    EXPECT_SAME_VALUE(error_timeout, NVML_ERROR_TIMEOUT);
    EXPECT_SAME_VALUE(error_function_not_found, NVML_ERROR_FUNCTION_NOT_FOUND);
    EXPECT_SAME_VALUE(error_gpu_is_lost, NVML_ERROR_GPU_IS_LOST);
    EXPECT_SAME_VALUE(error_reset_required, NVML_ERROR_RESET_REQUIRED);
    EXPECT_SAME_VALUE(error_operating_system, NVML_ERROR_OPERATING_SYSTEM);
    EXPECT_SAME_VALUE(error_version_mismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    EXPECT_SAME_VALUE(error_no_data, NVML_ERROR_NO_DATA);
    EXPECT_SAME_VALUE(error_unknown, NVML_ERROR_UNKNOWN);
}

TEST(NvmlHeader, Constants) {
    EXPECT_SAME_VALUE(ecc_corrected, NVML_MEMORY_ERROR_TYPE_CORRECTED);
    EXPECT_SAME_VALUE(ecc_uncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
    EXPECT_SAME_VALUE(ecc_since_boot, NVML_VOLATILE_ECC);
    EXPECT_SAME_VALUE(type_double, NVML_VALUE_TYPE_DOUBLE);
    EXPECT_SAME_VALUE(type_unsigned, NVML_VALUE_TYPE_UNSIGNED_INT);
    EXPECT_SAME_VALUE(type_unsigned_long, NVML_VALUE_TYPE_UNSIGNED_LONG);
    EXPECT_SAME_VALUE(type_unsigned_long_long, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
    EXPECT_SAME_VALUE(field_power_average, NVML_FI_DEV_POWER_AVERAGE);
    EXPECT_SAME_VALUE(field_power_instant, NVML_FI_DEV_POWER_INSTANT);
    EXPECT_SAME_VALUE(clock_graphics, NVML_CLOCK_GRAPHICS);
    EXPECT_SAME_VALUE(clock_sm, NVML_CLOCK_SM);
    EXPECT_SAME_VALUE(clock_memory, NVML_CLOCK_MEM);
    EXPECT_SAME_VALUE(temperature_gpu, NVML_TEMPERATURE_GPU);
    EXPECT_SAME_VALUE(architecture_volta, NVML_DEVICE_ARCH_VOLTA);
    EXPECT_SAME_VALUE(architecture_turing, NVML_DEVICE_ARCH_TURING);
    EXPECT_SAME_VALUE(architecture_ampere, NVML_DEVICE_ARCH_AMPERE);
    EXPECT_SAME_VALUE(architecture_ada, NVML_DEVICE_ARCH_ADA);
    EXPECT_SAME_VALUE(architecture_hopper, NVML_DEVICE_ARCH_HOPPER);
    EXPECT_SAME_VALUE(architecture_blackwell, NVML_DEVICE_ARCH_BLACKWELL);
    EXPECT_SAME_VALUE(reason_gpu_idle, nvmlClocksEventReasonGpuIdle);
    EXPECT_SAME_VALUE(reason_applications_clocks, nvmlClocksEventReasonApplicationsClocksSetting);
    EXPECT_SAME_VALUE(reason_sw_power_cap, nvmlClocksEventReasonSwPowerCap);
    EXPECT_SAME_VALUE(reason_hw_slowdown, nvmlClocksThrottleReasonHwSlowdown);
    EXPECT_SAME_VALUE(reason_sync_boost, nvmlClocksEventReasonSyncBoost);
    EXPECT_SAME_VALUE(reason_sw_thermal, nvmlClocksEventReasonSwThermalSlowdown);
    EXPECT_SAME_VALUE(reason_hw_thermal, nvmlClocksThrottleReasonHwThermalSlowdown);
    EXPECT_SAME_VALUE(reason_hw_power_brake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
    EXPECT_SAME_VALUE(gpm_metrics_get_version, NVML_GPM_METRICS_GET_VERSION);
    EXPECT_SAME_VALUE(gpm_support_version, NVML_GPM_SUPPORT_VERSION);
    EXPECT_SAME_VALUE(gpm_sm_util, NVML_GPM_METRIC_SM_UTIL);
    EXPECT_SAME_VALUE(power_scope_gpu, NVML_POWER_SCOPE_GPU);
    EXPECT_SAME_VALUE(power_scope_module, NVML_POWER_SCOPE_MODULE);
    EXPECT_SAME_VALUE(power_scope_memory, NVML_POWER_SCOPE_MEMORY);
    EXPECT_SAME_VALUE(gpm_sm_occupancy, NVML_GPM_METRIC_SM_OCCUPANCY);
    EXPECT_SAME_VALUE(gpm_any_tensor, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
    EXPECT_SAME_VALUE(gpm_dram_util, NVML_GPM_METRIC_DRAM_BW_UTIL);
    EXPECT_SAME_VALUE(gpm_pcie_tx, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
    EXPECT_SAME_VALUE(gpm_pcie_rx, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
    EXPECT_SAME_VALUE(gpm_nvlink_rx, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
    EXPECT_SAME_VALUE(gpm_nvlink_tx, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
    EXPECT_SAME_VALUE(gpm_metric_max, NVML_GPM_METRIC_MAX);
}

TEST(NvmlHeader, Structures) {
    EXPECT_SAME_SIZE(Memory, nvmlMemory_t);
    EXPECT_SAME_MEMBER(Memory, total, nvmlMemory_t, total);
    EXPECT_SAME_MEMBER(Memory, free, nvmlMemory_t, free);
    EXPECT_SAME_MEMBER(Memory, used, nvmlMemory_t, used);

    EXPECT_SAME_SIZE(Utilization, nvmlUtilization_t);
    EXPECT_SAME_MEMBER(Utilization, gpu, nvmlUtilization_t, gpu);
    EXPECT_SAME_MEMBER(Utilization, memory, nvmlUtilization_t, memory);

    EXPECT_SAME_SIZE(PciInfo, nvmlPciInfo_t);
    EXPECT_SAME_MEMBER(PciInfo, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
    EXPECT_SAME_MEMBER(PciInfo, domain, nvmlPciInfo_t, domain);
    EXPECT_SAME_MEMBER(PciInfo, bus, nvmlPciInfo_t, bus);
    EXPECT_SAME_MEMBER(PciInfo, device, nvmlPciInfo_t, device);
    EXPECT_SAME_MEMBER(PciInfo, pci_device_id, nvmlPciInfo_t, pciDeviceId);
    EXPECT_SAME_MEMBER(PciInfo, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
    EXPECT_SAME_MEMBER(PciInfo, bus_id, nvmlPciInfo_t, busId);

    EXPECT_SAME_SIZE(Value, nvmlValue_t);
    EXPECT_SAME_MEMBER(Value, as_double, nvmlValue_t, dVal);
    EXPECT_SAME_MEMBER(Value, as_int, nvmlValue_t, siVal);
    EXPECT_SAME_MEMBER(Value, as_unsigned, nvmlValue_t, uiVal);
    EXPECT_SAME_MEMBER(Value, as_unsigned_long, nvmlValue_t, ulVal);
    EXPECT_SAME_MEMBER(Value, as_unsigned_long_long, nvmlValue_t, ullVal);
    EXPECT_SAME_MEMBER(Value, as_long_long, nvmlValue_t, sllVal);
    EXPECT_SAME_MEMBER(Value, as_unsigned_short, nvmlValue_t, usVal);

    EXPECT_SAME_SIZE(FieldValue, nvmlFieldValue_t);
    EXPECT_SAME_MEMBER(FieldValue, field_id, nvmlFieldValue_t, fieldId);
    EXPECT_SAME_MEMBER(FieldValue, scope_id, nvmlFieldValue_t, scopeId);
    EXPECT_SAME_MEMBER(FieldValue, timestamp, nvmlFieldValue_t, timestamp);
    EXPECT_SAME_MEMBER(FieldValue, latency_usec, nvmlFieldValue_t, latencyUsec);
    EXPECT_SAME_MEMBER(FieldValue, value_type, nvmlFieldValue_t, valueType);
    EXPECT_SAME_MEMBER(FieldValue, status, nvmlFieldValue_t, nvmlReturn);
    EXPECT_SAME_MEMBER(FieldValue, value, nvmlFieldValue_t, value);

    EXPECT_SAME_SIZE(GpmMetric, nvmlGpmMetric_t);
    EXPECT_SAME_MEMBER(GpmMetric, metric_id, nvmlGpmMetric_t, metricId);
    EXPECT_SAME_MEMBER(GpmMetric, status, nvmlGpmMetric_t, nvmlReturn);
    EXPECT_SAME_MEMBER(GpmMetric, value, nvmlGpmMetric_t, value);
    EXPECT_SAME_MEMBER(GpmMetric, metric_info, nvmlGpmMetric_t, metricInfo);

    EXPECT_SAME_SIZE(GpmMetricsGet, nvmlGpmMetricsGet_t);
    EXPECT_SAME_MEMBER(GpmMetricsGet, version, nvmlGpmMetricsGet_t, version);
    EXPECT_SAME_MEMBER(GpmMetricsGet, num_metrics, nvmlGpmMetricsGet_t, numMetrics);
    EXPECT_SAME_MEMBER(GpmMetricsGet, sample1, nvmlGpmMetricsGet_t, sample1);
    EXPECT_SAME_MEMBER(GpmMetricsGet, sample2, nvmlGpmMetricsGet_t, sample2);
    EXPECT_SAME_MEMBER(GpmMetricsGet, metrics, nvmlGpmMetricsGet_t, metrics);

    EXPECT_SAME_SIZE(GpmSupport, nvmlGpmSupport_t);
    EXPECT_SAME_MEMBER(GpmSupport, version, nvmlGpmSupport_t, version);
    EXPECT_SAME_MEMBER(GpmSupport, is_supported_device, nvmlGpmSupport_t, isSupportedDevice);
}

template <typename T>
concept Complete = requires {
    sizeof(T);
};

/// The same in the C calling convention: integers and enumerations of one size, or pointers to such, to
/// structures of one size, or to opaque ones.
template <typename Ours, typename Theirs>
constexpr bool compatible() {
    if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        return compatible<std::remove_cv_t<std::remove_pointer_t<Ours>>,
                          std::remove_cv_t<std::remove_pointer_t<Theirs>>>();
    } else if constexpr (Complete<Ours> && Complete<Theirs>) {
        constexpr bool integers = (std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&(
            std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
        constexpr bool structures = std::is_class_v<Ours> && std::is_class_v<Theirs>;
        return (integers || structures) && sizeof(Ours) == sizeof(Theirs);
    } else {
        return !Complete<Ours> && !Complete<Theirs>;
    }
}

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R(A...), S(B...)>
    : std::bool_constant<compatible<R, S>() && (compatible<A, B>() && ...)> {
};

#define COUNT(member, symbol, ...) +1
constexpr int declared = 0 JOULEMARK_NVML_REQUIRED(COUNT) JOULEMARK_NVML_OPTIONAL(COUNT);
#undef COUNT

#define SYMBOL(member, symbol, ...) constexpr std::string_view symbol_of_##member = symbol;
JOULEMARK_NVML_REQUIRED(SYMBOL)
JOULEMARK_NVML_OPTIONAL(SYMBOL)
#undef SYMBOL

TEST(NvmlHeader, ProcessInfo) {
    EXPECT_SAME_SIZE(ProcessInfo, nvmlProcessInfo_t);
}

TEST(NvmlHeader, Functions) {
    int checked = 0;
#define CHECK(member, function)                                                                          \
    ++checked;                                                                                           \
    EXPECT_EQ(symbol_of_##member, #function);                                                            \
    EXPECT_TRUE((SameCall<std::remove_pointer_t<decltype(Table::member)>, decltype(::function)>::value)) \
        << #function;
    CHECK(init, nvmlInit_v2)
    CHECK(shutdown, nvmlShutdown)
    CHECK(device_count, nvmlDeviceGetCount_v2)
    CHECK(device_by_index, nvmlDeviceGetHandleByIndex_v2)
    CHECK(driver_version, nvmlSystemGetDriverVersion)
    CHECK(name, nvmlDeviceGetName)
    CHECK(uuid, nvmlDeviceGetUUID)
    CHECK(pci_info, nvmlDeviceGetPciInfo_v3)
    CHECK(minor_number, nvmlDeviceGetMinorNumber)
    CHECK(architecture, nvmlDeviceGetArchitecture)
    CHECK(memory, nvmlDeviceGetMemoryInfo)
    CHECK(power_usage, nvmlDeviceGetPowerUsage)
    CHECK(total_energy, nvmlDeviceGetTotalEnergyConsumption)
    CHECK(ecc_errors, nvmlDeviceGetTotalEccErrors)
    CHECK(compute_processes, nvmlDeviceGetComputeRunningProcesses_v3)
    CHECK(utilization, nvmlDeviceGetUtilizationRates)
    CHECK(clock, nvmlDeviceGetClockInfo)
    CHECK(max_clock, nvmlDeviceGetMaxClockInfo)
    CHECK(temperature, nvmlDeviceGetTemperature)
    CHECK(throttle_reasons, nvmlDeviceGetCurrentClocksThrottleReasons)
    CHECK(field_values, nvmlDeviceGetFieldValues)
    CHECK(power_limit, nvmlDeviceGetPowerManagementLimit)
    CHECK(power_limit_range, nvmlDeviceGetPowerManagementLimitConstraints)
    CHECK(power_limit_default, nvmlDeviceGetPowerManagementDefaultLimit)
    CHECK(power_limit_enforced, nvmlDeviceGetEnforcedPowerLimit)
    CHECK(set_power_limit, nvmlDeviceSetPowerManagementLimit)
    CHECK(set_locked_clocks, nvmlDeviceSetGpuLockedClocks)
    CHECK(reset_locked_clocks, nvmlDeviceResetGpuLockedClocks)
    CHECK(supported_memory_clocks, nvmlDeviceGetSupportedMemoryClocks)
    CHECK(supported_graphics_clocks, nvmlDeviceGetSupportedGraphicsClocks)
    CHECK(mig_mode, nvmlDeviceGetMigMode)
    CHECK(mig_device_count, nvmlDeviceGetMaxMigDeviceCount)
    CHECK(mig_device, nvmlDeviceGetMigDeviceHandleByIndex)
    CHECK(gpm_support, nvmlGpmQueryDeviceSupport)
    CHECK(gpm_sample_alloc, nvmlGpmSampleAlloc)
    CHECK(gpm_sample_free, nvmlGpmSampleFree)
    CHECK(gpm_sample_get, nvmlGpmSampleGet)
    CHECK(gpm_metrics_get, nvmlGpmMetricsGet)
#undef CHECK
    EXPECT_EQ(checked, declared) << "a function of vendor/nvml_api.h is not compared here";
}

}  // namespace
}  // namespace joulemark::nvml::api
