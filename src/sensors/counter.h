// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "sensors/source.h"

namespace joulemark::sensors {

/// What is known of an energy counter before it is read.
struct CounterModel {
    std::uint64_t modulus = 0;   ///< number of distinct values before it starts again at 0; 0: 2^64
    double units_per_joule = 1;  ///< 1e6 for a counter of microjoules
    double max_power_w = 1000;   ///< more than the device can draw: a faster rise is no energy
    double min_power_w = 0;      ///< less than it draws whenever it is on; 0: unknown
};

/// Turns raw readings of an energy counter into joules since the first good one, or since a reset: the one
/// place that knows wraps, resets, frozen counters and failed reads.
///
/// A rise is the modular difference to the last good reading, so one wrap is exact and a failed read costs
/// nothing. When more than one wrap may have happened in between, the reading is a gap, counted as
/// unknowable, and the least energy that explains it is added: the total is then a lower bound. A rise that
/// no power could explain (a fall where no wrap is plausible, a jump) is a reset: nobody knows what was
/// drawn since the reading before, so the total starts again at 0 (where it had not risen yet, a unit below
/// what it was), and every reader of it sees the fall. A counter that stands still while power is drawn is a
/// gap until it moves.
class Counter {
  public:
    explicit Counter(CounterModel model) : model_(model) {}

    /// Takes one reading at `time_ns`; nullopt is a failed read. `power_w`, where another sensor knows it,
    /// tells whether the counter must have moved. Joules since the first good reading or the last reset, NaN
    /// for a gap.
    double update(std::int64_t time_ns, std::optional<std::uint64_t> raw,
                  double power_w = std::numeric_limits<double>::quiet_NaN()) noexcept;

    /// Joules so far, gaps passed over.
    double joules() const { return static_cast<double>(total_) / model_.units_per_joule; }
    const CounterEvents& events() const { return events_; }

    /// A counter is called frozen after this long without a change.
    static constexpr double frozen_after_s = 10;
    /// A rise may be this much older than the reading that shows it: sensors refresh up to once a second.
    static constexpr double refresh_s = 1;

  private:
    bool stands_still(std::int64_t time_ns, double power_w);

    CounterModel model_;
    CounterEvents events_;
    bool started_ = false;
    bool frozen_ = false;
    std::uint64_t raw_ = 0;        // last good reading
    std::int64_t read_ns_ = 0;     // when that was
    std::int64_t changed_ns_ = 0;  // when the value was first seen
    double expected_j_ = 0;        // what must have been drawn since then
    std::int64_t total_ = 0;       // exact, in raw units
};

}  // namespace joulemark::sensors
