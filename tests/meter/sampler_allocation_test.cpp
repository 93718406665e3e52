// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "counting_new.h"
#include "fakes.h"
#include "meter/sampler.h"

namespace joulemark::meter {
namespace {

/// Counts, on the thread that reads, the allocations since its third read (the first ones may set things up).
struct Probe {
    std::atomic<int> reads = 0;
    std::atomic<std::uint64_t> at_third = 0, at_last = 0;

    void read(std::span<double> values) {
        values[0] = 1;
        at_last = allocations;
        if (++reads == 3) {
            at_third = allocations;
        }
    }
};

TEST(SamplingLoops, NeverAllocate) {
    Probe fast;
    Probe slow;
    Sources sources;
    sources.push_back(
        std::make_unique<FakeSource>(source_info("power", "gpu0", {sensors::Metric::gpu_power_w}),
                                     [&](std::span<double> values) { fast.read(values); }));
    sources.push_back(
        std::make_unique<FakeSource>(source_info("counter", "gpu0", {sensors::Metric::gpu_energy_j}, true),
                                     [&](std::span<double> values) { slow.read(values); }));
    const std::vector<sensors::Device> devices{device("gpu0", "gpu")};
    const TemporaryFolder folder;
    Totals totals(devices, sources, 10, 1);
    RunWriter writer(folder / "run", nlohmann::json::object(), sources, totals, false);
    Sampler sampler(std::make_shared<MonotonicClock>(), sources, writer,
                    {.rate_hz = 1000, .energy_rate_hz = 100});
    sampler.start();
    while (fast.reads < 200 || slow.reads < 20) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const std::uint64_t fast_allocations = fast.at_last - fast.at_third;
    const std::uint64_t slow_allocations = slow.at_last - slow.at_third;
    EXPECT_TRUE(sampler.stop());
    EXPECT_EQ(fast_allocations, 0U);
    EXPECT_EQ(slow_allocations, 0U);
}

}  // namespace
}  // namespace joulemark::meter
