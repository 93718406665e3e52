// SPDX-License-Identifier: Apache-2.0
#include "vendor/simulated_clock.h"

namespace joulemark::nvml {
namespace {

class Participant final : public Clock::Hold {
  public:
    Participant(const api::Table* table, bool drives) : api_(table), self_(table->sim_join(drives ? 1 : 0)) {}
    ~Participant() override { api_->sim_leave(self_); }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    bool sleep_until(std::int64_t deadline_ns, const std::stop_token& stop) {
        const std::stop_callback wake(stop, [this] { api_->sim_wake(self_); });
        return api_->sim_sleep(self_, deadline_ns) == 1 && !stop.stop_requested();
    }

  private:
    const api::Table* api_;
    void* self_;
};

}  // namespace

std::int64_t SimulatedClock::now_ns() const { return api_->sim_now(); }
std::int64_t SimulatedClock::realtime_ns() const { return api_->sim_realtime(); }

bool SimulatedClock::sleep_until(std::int64_t deadline_ns, std::stop_token stop) {
    thread_local Participant self(api_, false);
    return self.sleep_until(deadline_ns, stop);
}

bool SimulatedClock::drive_until(std::int64_t deadline_ns, std::stop_token stop) {
    return Participant(api_, true).sleep_until(deadline_ns, stop);
}

std::unique_ptr<Clock::Hold> SimulatedClock::hold() { return std::make_unique<Participant>(api_, false); }

}  // namespace joulemark::nvml
