// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/state.h"

namespace joulemark::sim {

/// What the sensors of the simulated GPUs show: the exact load log, seen through refresh, lag, averaging and
/// faults. A sensor takes a new value at its refresh instants, each GPU's at an offset of its own.
class Readings {
  public:
    explicit Readings(const State& state) : state_(state), faults_(state.faults()) {}

    double power_instant_w(unsigned gpu, std::int64_t now) const;
    double power_average_w(unsigned gpu, std::int64_t now) const;
    double energy_j(unsigned gpu, std::int64_t now) const;  ///< the counter, from the start of the driver
    double busy_pct(unsigned gpu, std::int64_t now) const;  ///< over 1 s
    double sm_clock_mhz(unsigned gpu, std::int64_t now) const;
    std::uint64_t memory_used_bytes(unsigned gpu, std::int64_t now) const;

    /// The fault of a kind in force; for kinds that name a function, that function's.
    const Fault* fault(FaultKind kind, unsigned gpu, std::int64_t now, std::string_view function = {}) const;
    bool faultless() const { return faults_.empty(); }

    /// The last refresh of power and counter at or before `now`.
    std::int64_t refreshed_ns(unsigned gpu, std::int64_t now) const;

  private:
    double mean_power_w(unsigned gpu, std::int64_t now, const SensorTiming::View& view) const;

    const State& state_;
    std::vector<Fault> faults_;
};

/// Part of the busy time in which the streaming multiprocessors of simulated work compute.
inline constexpr double sm_share = 0.8;
/// The same for the memory controller.
inline constexpr double memory_share = 0.45;

}  // namespace joulemark::sim
