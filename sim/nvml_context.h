// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/readings.h"
#include "sim/state.h"
#include "vendor/nvml_api.h"

#define JOULEMARK_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace joulemark::nvml::api {

/// What a device handle points to: a GPU, or a slice of one in MIG mode.
struct DeviceTag {
    unsigned gpu;  ///< physical number
    int slice;     ///< -1: the whole GPU
};

}  // namespace joulemark::nvml::api

namespace joulemark::sim {

namespace api = nvml::api;

inline constexpr int slices_per_gpu = 2;

/// What one call works with.
struct Call {
    State& state;
    const Readings& readings;
    unsigned gpu;
    int slice;
    std::int64_t now;
};

/// The state that this process has open, null before the first nvmlInit. It stays after nvmlShutdown, for
/// threads that still take part in the clock.
State* current_state();
/// The readings of the open state; null unless the library is initialised.
const Readings* initialised();
/// Handles are of this process; null when out of range.
api::Device handle_of(unsigned gpu, int slice);
bool is_handle(api::Device device);

/// Waits out the real duration of a slow call. A simulated instant is frozen: nothing to wait for.
void take_time(const State& state, double seconds);

/// The answer of an injected fault, else success.
api::Return faulty(const Call& call, std::string_view function);

/// The same beginning for every device function: initialised? a handle of ours? what does a fault say?
template <typename Body>
api::Return on_device(api::Device device, std::string_view function, Body body) {
    const Readings* readings = initialised();
    if (readings == nullptr) {
        return api::error_uninitialized;
    }
    if (!is_handle(device)) {
        return api::error_invalid_argument;
    }
    State& state = *current_state();
    const Call call{state, *readings, device->gpu, device->slice, state.now_ns()};
    if (!readings->faultless()) {
        if (const api::Return answer = faulty(call, function); answer != api::success) {
            return answer;
        }
    }
    return body(call);
}

/// As on_device, for what a MIG slice does not have.
template <typename Body>
api::Return on_gpu(api::Device device, std::string_view function, Body body) {
    return on_device(device, function, [&](const Call& call) {
        return call.slice >= 0 ? api::error_not_supported : body(call);
    });
}

/// As on_gpu, for functions that give one value through a pointer.
template <typename T, typename Value>
api::Return give(api::Device device, std::string_view function, T* out, Value value) {
    return on_gpu(device, function, [&](const Call& call) {
        if (out == nullptr) {
            return api::error_invalid_argument;
        }
        *out = static_cast<T>(value(call));
        return api::success;
    });
}

}  // namespace joulemark::sim
