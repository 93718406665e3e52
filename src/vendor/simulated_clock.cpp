// SPDX-License-Identifier: Apache-2.0
#include "vendor/simulated_clock.h"

#include <atomic>
#include <optional>

#include "core/error.h"

namespace joulemark::nvml {
namespace {

class Participant final : public Clock::Hold {
  public:
    Participant(const api::Table& table, bool drives)
        : sleep_(table.sim_sleep),
          wake_(table.sim_wake),
          leave_(table.sim_leave),
          self_(table.sim_join(drives ? 1 : 0)) {
        if (self_ == nullptr) {
            throw environment_error(
                "the simulated clock has no seat left; end some of the processes that use it");
        }
    }
    ~Participant() override { leave_(self_); }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    bool sleep_until(std::int64_t deadline_ns, const std::stop_token& stop) {
        const std::stop_callback wake(stop, [this] { wake_(self_); });
        // A wake is kept until the next sleep, so one may be left from the token of an earlier call.
        while (!stop.stop_requested()) {
            if (sleep_(self_, deadline_ns) == 1) {
                return !stop.stop_requested();
            }
        }
        return false;
    }

  private:
    // Copies: a thread may end, and leave, after the library was closed (the look-alike stays loaded).
    decltype(api::Table::sim_sleep) sleep_;
    decltype(api::Table::sim_wake) wake_;
    decltype(api::Table::sim_leave) leave_;
    void* self_;
};

/// This thread's place at the clock `of`.
struct Seat {
    std::uint64_t of = 0;
    std::optional<Participant> participant;
};
thread_local Seat seat;

std::atomic<std::uint64_t> clocks = 0;

}  // namespace

SimulatedClock::SimulatedClock(const api::Table* table) : api_(table), id_(++clocks) {}

std::int64_t SimulatedClock::now_ns() const {
    return api_->sim_now();
}
std::int64_t SimulatedClock::realtime_ns() const {
    return api_->sim_realtime();
}

bool SimulatedClock::sleep_until(std::int64_t deadline_ns, std::stop_token stop) {
    if (seat.of != id_ || !seat.participant) {
        seat.participant.emplace(*api_, false);
        seat.of = id_;
    }
    return seat.participant->sleep_until(deadline_ns, stop);
}

bool SimulatedClock::drive_until(std::int64_t deadline_ns, std::stop_token stop) {
    // The thread's own seat, awake, would hold the clock that it is about to drive. One is always taken
    // before the other is left, so that the clock cannot slip away between.
    const bool seated = seat.of == id_ && seat.participant;
    Participant driver(*api_, true);
    seat.participant.reset();
    const bool reached = driver.sleep_until(deadline_ns, stop);
    if (seated) {
        seat.participant.emplace(*api_, false);
    }
    return reached;
}

std::unique_ptr<Clock::Hold> SimulatedClock::hold() {
    return std::make_unique<Participant>(*api_, false);
}

}  // namespace joulemark::nvml
