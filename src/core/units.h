// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace joulemark {

/// Times are 64-bit nanoseconds of CLOCK_MONOTONIC (or of the simulated clock) of one host. Everything
/// else is SI inside: watts, joules, seconds, bytes; converted at the vendor edge and for display only.
inline constexpr std::int64_t ns_per_s = 1'000'000'000;

constexpr double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }
constexpr std::int64_t nanoseconds(double s) {
    return static_cast<std::int64_t>(s * 1e9 + (s < 0 ? -0.5 : 0.5));
}
constexpr double joules_per_kwh = 3.6e6;
constexpr double kwh(double joules) { return joules / joules_per_kwh; }

}  // namespace joulemark
