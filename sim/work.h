// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/virtual_clock.h"

namespace joulemark::sim {

/// Limits in force on the GPUs of one job: the tightest decide, since the GPUs wait for each other.
struct Limits {
    double power_cap_w;
    double sm_clock_mhz;
};

/// Simulated work on some GPUs. It takes part in the clock and drives it.
class Job {
  public:
    /// Throws environment_error when the clock has no seat left.
    Job(State& state, std::vector<unsigned> gpus);

    std::int64_t now_ns() const { return seat_->state().now_ns(); }
    Limits limits() const;

    /// What the work takes under the limits of the moment: seconds for all of it, and each GPU's load.
    struct Pace {
        double duration_s;
        std::function<Load(unsigned gpu)> load;
    };
    /// Does one piece of work, with a new pace whenever a limit changes.
    void run(const std::function<Pace(const Limits&)>& pace);

  private:
    std::vector<unsigned> gpus_;
    std::unique_ptr<Participant> seat_;
};

}  // namespace joulemark::sim
