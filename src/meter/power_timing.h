// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/error.h"
#include "meter/attribution.h"

/// How a power reading sees time, from a load in bursts (docs/methods.md, "Timing of power readings"). A
/// reading takes a new value every `refresh`, the mean power over the `window` that ended `lag` before.
namespace joulemark::meter {

/// What a load has to be for any reading to be calibrated under it, counters too.
inline constexpr std::int64_t least_bursts = 10;
/// Of its mean power it has to change more than this, else it is noise that is fitted.
inline constexpr double least_contrast = 0.1;

/// A read that began at `time_ns` and took `read_ns`, inside which its value was true.
struct PowerReading {
    std::int64_t time_ns;
    double power_w;
    std::int64_t read_ns = 0;
};

struct PowerTiming {
    double refresh_s = 0, lag_s = 0, window_s = 0;
    double lag_bound_s = 0, window_bound_s = 0;  ///< half-widths of 95 % intervals
    double low_w = 0, high_w = 0;                ///< fitted powers of the least and the most that was done
    double residual_w = 0;                       ///< root mean square of what the model leaves
    std::size_t refreshes = 0;                   ///< new values that it was fitted to
};

/// `regions` say when the load did what; the power is taken to be even in each kind of region, and between
/// them. Time within a second or two after a burst has to be marked or idle. `readings` in order of time;
/// many repeat the one before. A failure says what would be needed.
Result<PowerTiming> power_timing(std::span<const RegionSpan> regions, std::span<const PowerReading> readings);

}  // namespace joulemark::meter
