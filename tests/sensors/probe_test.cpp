// SPDX-License-Identifier: Apache-2.0
#include "sensors/probe.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark::sensors {
namespace {

/// A clock that moves only when somebody waits on it.
class SteppedClock final : public Clock {
  public:
    std::int64_t now_ns() const override { return now_ns_; }
    std::int64_t realtime_ns() const override { return now_ns_; }
    bool sleep_until(std::int64_t deadline_ns, std::stop_token) override {
        now_ns_ = deadline_ns;
        return true;
    }

  private:
    std::int64_t now_ns_ = 0;
};

/// Refreshes its first value every `period_s`; its second never changes and its third is a gap.
class SteadySource final : public Source {
  public:
    SteadySource(const Clock& clock, double period_s)
        : Source({.name = "steady",
                  .device = "cpu",
                  .metrics = {Metric::cpu_energy_j, Metric::cpu_power_w, Metric::cpu_busy_pct},
                  .method = "counter",
                  .scope = "cpu package",
                  .origin = "",
                  .slow = false,
                  .native_period_s = {},
                  .accuracy_pct = {},
                  .accuracy_note = ""}),
          clock_(clock),
          period_s_(period_s) {}
    void read(std::span<double> values) noexcept override {
        values[0] = std::floor(seconds(clock_.now_ns()) / period_s_ + 1e-9);
        values[1] = 5;
        values[2] = std::nan("");
    }

  private:
    const Clock& clock_;
    double period_s_;
};

Machine machine_with(double period_s) {
    Machine machine;
    machine.clock = std::make_shared<SteppedClock>();
    machine.sources.push_back(std::make_unique<SteadySource>(*machine.clock, period_s));
    machine.reports.push_back({.name = "steady cpu",
                               .quantity = "energy",
                               .scope = "",
                               .method = "",
                               .unit = "",
                               .status = "used",
                               .reason = ""});
    machine.reports.push_back({.name = "steady cpu",
                               .quantity = "power",
                               .scope = "",
                               .method = "",
                               .unit = "",
                               .status = "used",
                               .reason = ""});
    return machine;
}

TEST(Probe, finds_the_period_of_what_changes_and_none_of_what_does_not) {
    Machine machine = machine_with(0.1);
    const auto results = probe(machine);
    ASSERT_EQ(results.size(), 1U);
    EXPECT_NEAR(results[0].update_period_s.at(0).value(), 0.1, 0.0011);
    EXPECT_FALSE(results[0].update_period_s.at(1));
    EXPECT_FALSE(results[0].update_period_s.at(2));
    EXPECT_GE(results[0].read_latency_s, 0);
}

TEST(Probe, says_nothing_of_a_sensor_that_changed_too_seldom) {
    EXPECT_FALSE(probe(machine_with(0.7)).at(0).update_period_s.at(0));
}

TEST(Probe, fills_the_reports) {
    Machine machine = machine_with(0.05);
    probe_reports(machine);
    EXPECT_NEAR(machine.reports[0].update_period_s.value(), 0.05, 0.0011);
    EXPECT_FALSE(machine.reports[1].update_period_s);
    EXPECT_TRUE(machine.reports[1].read_latency_s);
}

}  // namespace
}  // namespace joulemark::sensors
