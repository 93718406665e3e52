// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/state.h"

namespace joulemark::sim {

/// A seat at the clock of simulated GPUs, for one thread. While its thread is awake the clock stands still;
/// when all participants sleep, and one who drives is among them, it jumps to the earliest deadline. Under
/// the real clock a seat only sleeps, and owns loads.
///
/// No state of the clock is ever between two others: the time is one atomic number, a seat another, and a
/// sleeper whose deadline has come counts as awake from that store on, whether or not it was told.
/// Participants that died are noticed by the kernel lock that they no longer hold: before the clock follows a
/// driver, when somebody joins, and by sleepers who have seen no progress for a while.
class Participant {
  public:
    /// Null when every seat is taken.
    static std::unique_ptr<Participant> join(State& state, bool drives);
    /// Leaves the clock, and ends this participant's loads.
    ~Participant();
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    /// Sleeps until the clock shows the deadline: true. A wake() since the last sleep ends it at once: false.
    bool sleep_until(std::int64_t deadline_ns);
    /// From any thread; kept until the next sleep when the participant is awake.
    void wake();

    State& state() const { return state_; }
    /// Names the loads of this participant.
    std::uint64_t owner() const { return slot_.owner; }

  private:
    Participant(State& state, std::size_t seat);
    bool awake_again(std::int64_t deadline_ns, bool& reached);
    static void advance(State& state);
    static void drop_dead(State& state);
    static void release(State& state, std::size_t seat);

    State& state_;
    std::size_t seat_;
    Slot& slot_;
};

}  // namespace joulemark::sim
