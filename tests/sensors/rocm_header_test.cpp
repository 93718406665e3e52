// SPDX-License-Identifier: Apache-2.0
//
// Joulemark's declarations of ROCm SMI against AMD's own header: constants, and the size of every argument.
#include <gtest/gtest.h>
#include <rocm_smi/rocm_smi.h>

#include "vendor/rocm_smi_api.h"

namespace joulemark::rocm {
namespace {

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
/// An enumeration of theirs is an int of ours, by value and behind a pointer.
template <typename A, typename B>
constexpr bool same_argument() {
    if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
        return sizeof(std::remove_pointer_t<A>) == sizeof(std::remove_pointer_t<B>);
    } else {
        return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
    }
}
template <typename R1, typename... A, typename R2, typename... B>
struct Same<R1(A...), R2(B...)>
    : std::bool_constant<sizeof(R1) == sizeof(R2) && sizeof...(A) == sizeof...(B) &&
                         (same_argument<A, B>() && ...)> {};

#define JOULEMARK_HEADER(symbol, ...) static_assert(Same<__VA_ARGS__, decltype(symbol)>::value, #symbol)
using api::Status;
JOULEMARK_HEADER(rsmi_init, Status(std::uint64_t));
JOULEMARK_HEADER(rsmi_shut_down, Status());
JOULEMARK_HEADER(rsmi_num_monitor_devices, Status(std::uint32_t*));
JOULEMARK_HEADER(rsmi_dev_name_get, Status(std::uint32_t, char*, std::size_t));
JOULEMARK_HEADER(rsmi_dev_unique_id_get, Status(std::uint32_t, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_pci_id_get, Status(std::uint32_t, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_power_ave_get, Status(std::uint32_t, std::uint32_t, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_energy_count_get, Status(std::uint32_t, std::uint64_t*, float*, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_power_cap_get, Status(std::uint32_t, std::uint32_t, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_power_cap_range_get,
                 Status(std::uint32_t, std::uint32_t, std::uint64_t*, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_memory_total_get, Status(std::uint32_t, int, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_memory_usage_get, Status(std::uint32_t, int, std::uint64_t*));
JOULEMARK_HEADER(rsmi_dev_memory_busy_percent_get, Status(std::uint32_t, std::uint32_t*));
JOULEMARK_HEADER(rsmi_dev_busy_percent_get, Status(std::uint32_t, std::uint32_t*));
JOULEMARK_HEADER(rsmi_dev_temp_metric_get, Status(std::uint32_t, std::uint32_t, int, std::int64_t*));
#undef JOULEMARK_HEADER

TEST(RocmHeader, constants_are_amds) {
    EXPECT_EQ(api::success, RSMI_STATUS_SUCCESS);
    EXPECT_EQ(api::not_supported, RSMI_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(api::permission, RSMI_STATUS_PERMISSION);
    EXPECT_EQ(api::memory_vram, RSMI_MEM_TYPE_VRAM);
    EXPECT_EQ(api::temperature_edge, static_cast<std::uint32_t>(RSMI_TEMP_TYPE_EDGE));
    EXPECT_EQ(api::temperature_junction, static_cast<std::uint32_t>(RSMI_TEMP_TYPE_JUNCTION));
    EXPECT_EQ(api::temperature_current, RSMI_TEMP_CURRENT);
}

}  // namespace
}  // namespace joulemark::rocm
