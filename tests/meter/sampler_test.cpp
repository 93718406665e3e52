// SPDX-License-Identifier: Apache-2.0
#include "meter/sampler.h"

#include <chrono>
#include <latch>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/units.h"
#include "fakes.h"

namespace joulemark::meter {
namespace {

using namespace std::chrono_literals;
using enum sensors::Metric;

constexpr std::int64_t ms = 1'000'000;

/// A sampler over fake sources, and the rows it wrote.
class SamplerTest : public testing::Test {
  protected:
    void add(std::string name, sensors::Metric metric, FakeSource::Read read, bool slow = false) {
        sources_.push_back(std::make_unique<FakeSource>(source_info(std::move(name), "gpu0", {metric}, slow),
                                                        std::move(read)));
    }
    Sampler& start(std::shared_ptr<Clock> clock, SamplingRates rates) {
        totals_.emplace(devices_, sources_, rates.rate_hz, rates.energy_rate_hz);
        writer_.emplace(folder_ / "run", nlohmann::json::object(), sources_, *totals_, false);
        sampler_.emplace(std::move(clock), sources_, *writer_, rates);
        sampler_->start();
        return *sampler_;
    }
    /// Start times of the rows in which `column` is filled, after everything has ended.
    std::vector<std::int64_t> times(std::size_t column) {
        writer_->stop();
        std::vector<std::int64_t> result;
        for (const auto& row : table(folder_ / "run/gpu.csv")) {
            if (row[0] != "time_ns" && !row.at(column).empty()) {
                result.push_back(*csv::integer(row[0]));
            }
        }
        return result;
    }

    const TemporaryFolder folder_;
    std::vector<sensors::Device> devices_{device("gpu0", "gpu")};
    Sources sources_;
    std::optional<Totals> totals_;
    std::optional<RunWriter> writer_;
    std::optional<Sampler> sampler_;
};

void wait_for(const std::function<bool()>& holds) {
    for (int i = 0; i < 10'000 && !holds(); ++i) {
        std::this_thread::sleep_for(1ms);
    }
    ASSERT_TRUE(holds());
}

TEST_F(SamplerTest, TicksOnTheGridWithoutDrift) {
    const auto clock = std::make_shared<FakeClock>(1000 * ms);
    add("power", gpu_power_w, [&](std::span<double> values) {
        clock->advance(3 * ms);  // a read takes time, and must not shift the next one
        values[0] = 100;
    });
    Sampler& sampler = start(clock, {.rate_hz = 100});
    wait_for([&] { return clock->reached_end(); });
    EXPECT_TRUE(sampler.stop());
    const auto rows = times(3);
    ASSERT_EQ(rows.size(), 1 + 99 + 1U) << "first sample, ticks until the end, last sample";
    for (std::size_t i = 2; i + 1 < rows.size(); ++i) {
        EXPECT_EQ(rows[i] - rows[i - 1], 10 * ms);
    }
    EXPECT_EQ(sampler.statistics().late, 0U);
    EXPECT_NEAR(sampler.statistics().achieved_hz.at("power.gpu0"), 100, 1e-6);
}

TEST_F(SamplerTest, SkipsTicksWhenReadingTakesLongerThanThePeriod) {
    const auto clock = std::make_shared<FakeClock>(1000 * ms);
    add("power", gpu_power_w, [&](std::span<double> values) {
        clock->advance(25 * ms);
        values[0] = 100;
    });
    Sampler& sampler = start(clock, {.rate_hz = 100});
    wait_for([&] { return clock->reached_end(); });
    EXPECT_TRUE(sampler.stop());
    const auto rows = times(3);
    for (std::size_t i = 2; i + 1 < rows.size(); ++i) {
        EXPECT_EQ(rows[i] - rows[i - 1], 30 * ms) << "the next tick of the grid, none queued";
    }
    const auto statistics = sampler.statistics();
    EXPECT_EQ(statistics.late, 2 * (rows.size() - 2));
    EXPECT_NEAR(statistics.achieved_hz.at("power.gpu0"), 1000.0 / 30, 1e-6);
}

TEST_F(SamplerTest, ASlowSourceDelaysNobody) {
    std::latch release(1);
    std::atomic<int> slow_reads = 0;
    std::atomic<int> fast_reads = 0;
    add("power", gpu_power_w, [&](std::span<double> values) { values[0] = ++fast_reads; });
    add(
        "counter", gpu_energy_j,
        [&](std::span<double> values) {
            if (++slow_reads == 2) {
                release.wait();
            }
            values[0] = slow_reads;
        },
        true);
    Sampler& sampler = start(std::make_shared<MonotonicClock>(), {.rate_hz = 1000, .energy_rate_hz = 100});
    wait_for([&] { return slow_reads == 2; });
    const int before = fast_reads;
    wait_for([&] { return fast_reads > before + 20; });
    EXPECT_EQ(slow_reads, 2) << "still inside its read";
    release.count_down();
    EXPECT_TRUE(sampler.stop());
    EXPECT_GE(times(4).size(), 3U);
}

TEST_F(SamplerTest, AnEdgeReadsEverything) {
    std::atomic<int> slow_reads = 0;
    add("power", gpu_power_w, [](std::span<double> values) { values[0] = 1; });
    add(
        "counter", gpu_energy_j, [&](std::span<double> values) { values[0] = ++slow_reads; }, true);
    Sampler& sampler = start(std::make_shared<MonotonicClock>(), {.rate_hz = 0.1, .energy_rate_hz = 0.1});
    EXPECT_EQ(slow_reads, 1) << "a first sample of everything";
    for (int edge = 0; edge < 5; ++edge) {
        sampler.edge();
        wait_for([&] { return slow_reads == edge + 2; });
    }
    EXPECT_TRUE(sampler.stop());
    EXPECT_EQ(slow_reads, 7) << "and a last one";
    EXPECT_EQ(times(3).size(), 7U);
}

TEST_F(SamplerTest, ReadsAnExpensiveCounterLessOften) {
    const auto clock = std::make_shared<FakeClock>(100 * ns_per_s);
    add(
        "counter", gpu_energy_j,
        [](std::span<double> values) {
            timespec start{};
            timespec now{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
            do {  // 2 ms of processor time
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
            } while ((now.tv_sec - start.tv_sec) * ns_per_s + now.tv_nsec - start.tv_nsec < 2 * ms);
            values[0] = 1;
        },
        true);
    Sampler& sampler = start(clock, {.rate_hz = 1, .energy_rate_hz = 10, .slow_cpu_share = 0.001});
    wait_for([&] { return clock->reached_end(); });
    EXPECT_TRUE(sampler.stop());
    const auto rows = times(3);
    EXPECT_LE(rows.size(), 2 + 1 + 50U) << "2 ms at 0.1 % of a processor: one every 2 s of the clock";
    EXPECT_GE(rows.size(), 4U);
}

/// Has room for one thread only.
class FullClock final : public Clock {
  public:
    std::int64_t now_ns() const override { return 0; }
    std::int64_t realtime_ns() const override { return 0; }
    bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override {
        thread_local bool seated = false;
        if (!seated && taken_.exchange(true)) {
            throw environment_error("no seat left");
        }
        seated = true;
        return deadline_ns <= 0 || MonotonicClock().sleep_until(std::numeric_limits<std::int64_t>::max(), stop);
    }

  private:
    std::atomic<bool> taken_ = false;
};

TEST_F(SamplerTest, AThreadForWhichTheClockHasNoPlaceIsAnErrorOfTheStart) {
    for (const char* name : {"one", "two", "three"}) {
        add(name, gpu_energy_j, [](std::span<double> values) { values[0] = 1; }, true);
    }
    EXPECT_THROW(start(std::make_shared<FullClock>(), {.rate_hz = 1, .energy_rate_hz = 1}), Error);
    EXPECT_TRUE(sampler_->stop());
}

TEST_F(SamplerTest, GivesUpASensorThatNeverReturns) {
    std::latch release(1);
    std::atomic<int> reads = 0;
    add(
        "counter", gpu_energy_j,
        [&](std::span<double> values) {
            if (++reads == 2) {
                release.wait();
            }
            values[0] = 1;
        },
        true);
    Sampler& sampler = start(std::make_shared<MonotonicClock>(), {.rate_hz = 1, .energy_rate_hz = 100});
    wait_for([&] { return reads == 2; });
    EXPECT_FALSE(sampler.stop());
    release.count_down();
    EXPECT_TRUE(sampler.stop());
}

}  // namespace
}  // namespace joulemark::meter
