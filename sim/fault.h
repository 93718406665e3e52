// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace joulemark::sim {

enum class FaultKind : std::uint8_t {
    counter_freeze,  ///< the energy counter stops at its value of that time
    counter_reset,   ///< and starts again from 0
    counter_wrap,    ///< it wraps at `value` joules
    power_frozen,    ///< power readings stay as they are at that time
    gpu_lost,        ///< every call answers GPU_IS_LOST from then on
    not_supported,   ///< the function answers so
    no_permission,   ///< the function answers so
    slow,            ///< the function takes `value` milliseconds (only under the real clock)
    index_order,     ///< NVML counts the GPUs backwards: index and minor number differ
    mig,             ///< the GPU is split (MIG mode on)
};

/// What goes wrong, where and when. Plain data: it lives in the shared state.
struct Fault {
    FaultKind kind;
    std::int32_t gpu;       ///< physical number; -1: all of them
    std::int64_t after_ns;  ///< since the start of the simulated clock
    double value;
    char function[64];  ///< "" where the kind names none
};

/// KIND[:FUNCTION][=VALUE][@SECONDS][#GPU], such as "counter-freeze@120#0", "counter-wrap=1000",
/// "slow:nvmlDeviceGetTotalEnergyConsumption=50". Throws bad_input with what is wrong.
Fault parse_fault(std::string_view spec);

/// The spec that parses to the same fault.
std::string to_string(const Fault& fault);

}  // namespace joulemark::sim
