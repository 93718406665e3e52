// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "vendor/nvml_api.h"

namespace joulemark::nvml {

/// The clock of simulated GPUs, reached through the look-alike library. A thread that once called
/// sleep_until takes part in it, holding it back while awake, until the thread ends; drive_until takes part
/// for the call only. Valid as long as the library is open.
class SimulatedClock final : public Clock {
  public:
    explicit SimulatedClock(const nvml::api::Table* table);

    std::int64_t now_ns() const override;
    std::int64_t realtime_ns() const override;
    bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override;
    bool drive_until(std::int64_t deadline_ns, std::stop_token stop) override;
    std::unique_ptr<Hold> hold() override;
    bool simulated() const override { return true; }

  private:
    const nvml::api::Table* api_;
    std::uint64_t id_;  ///< tells this clock's seats from those of one made before at the same address
};

}  // namespace joulemark::nvml
