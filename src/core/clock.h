// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>

namespace joulemark {

/// Time as the meter sees it: the machine's monotonic clock, or the clock of simulated GPUs.
///
/// A simulated clock advances only while all who sleep on it are asleep and at least one of them is
/// simulated work (or a `drive`r); then it jumps to the earliest deadline. A thread that must act at a
/// frozen instant (taking the sample at a region's edge, say) holds it.
class Clock {
  public:
    virtual ~Clock() = default;

    /// Nanoseconds; only differences mean anything.
    virtual std::int64_t now_ns() const = 0;
    /// Nanoseconds since the Unix epoch at this instant: the one wall-clock anchor of a host.
    virtual std::int64_t realtime_ns() const = 0;
    /// Sleeps until now_ns() >= deadline_ns. False when stop was requested first.
    virtual bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) = 0;
    /// The same, but lets a simulated clock run although no simulated work is present: used by whoever
    /// measures idle power. On the real clock the same as sleep_until.
    virtual bool drive_until(std::int64_t deadline_ns, std::stop_token stop) {
        return sleep_until(deadline_ns, stop);
    }
    /// While the returned object lives, a simulated clock stands still. Nothing on the real clock.
    struct Hold {
        virtual ~Hold() = default;
    };
    virtual std::unique_ptr<Hold> hold() { return nullptr; }
    virtual bool simulated() const { return false; }
};

/// CLOCK_MONOTONIC; sleeps end early when the token is stopped.
class MonotonicClock final : public Clock {
  public:
    std::int64_t now_ns() const override;
    std::int64_t realtime_ns() const override;
    bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override;
};

}  // namespace joulemark
