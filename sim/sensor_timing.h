// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sim/profile.h"

namespace joulemark::sim {

/// How the sensors of a simulated GPU see time: what calibration is to find again. Each takes a new value
/// every `refresh_ns`: the mean, over its window, of what held until its lag before.
struct SensorTiming {
    struct View {
        std::int64_t lag_ns, window_ns;
    };
    std::int64_t refresh_ns;
    View counter;  ///< of energy
    View instant;  ///< of power: the fresh one
    View average;  ///< of power: the average, where the accelerator has one

    /// Those of the accelerator. Its counter has no window, its average is over 1 s.
    explicit SensorTiming(const Profile& profile);
    SensorTiming() = default;
};

/// A JSON object of `refresh_s`, `counter_lag_s`, `counter_window_s`, `instant_...`, `average_...`; what is
/// left out keeps the accelerator's value. Throws bad_input on an unknown key or a value out of range.
/// `origin` names the text in the message.
SensorTiming parse_sensor_timing(const std::string& json, const std::string& origin, const Profile& profile);

}  // namespace joulemark::sim
