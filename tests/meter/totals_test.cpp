// SPDX-License-Identifier: Apache-2.0
#include "meter/totals.h"

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/units.h"
#include "fakes.h"

namespace joulemark::meter {
namespace {

constexpr std::int64_t second = ns_per_s;

TEST(EnergyLine, InterpolatesACounterAtItsEdges) {
    EnergyLine line(true, 5 * second);
    line.edge(second / 2, true, 0);
    line.add(0, 1000);
    line.add(second, 1100);
    line.edge(second * 3 / 2, false, 0);
    line.add(2 * second, 1300);
    EXPECT_DOUBLE_EQ(line.sum(0)->energy_j, 50 + 100);
}

TEST(EnergyLine, IntegratesPowerByTheTrapezoidRule) {
    EnergyLine line(false, 5 * second);
    line.edge(second / 2, true, 0);
    line.edge(second, false, 0);
    line.add(0, 100);
    line.add(2 * second, 300);  // 100 + 100 t: 150 to 200 W over half a second
    EXPECT_DOUBLE_EQ(line.sum(0)->energy_j, 175 * 0.5);
}

TEST(EnergyLine, BridgesAFailedReadOfACounterOnly) {
    EnergyLine counter(true, 5 * second);
    EnergyLine power(false, 5 * second);
    for (EnergyLine* line : {&counter, &power}) {
        line->edge(0, true, 0);
        line->edge(3 * second, false, 0);
    }
    const double values[] = {100, 200, std::nan(""), 400};
    for (int i = 0; i < 4; ++i) {
        counter.add(i * second, values[i]);
        power.add(i * second, values[i]);
    }
    EXPECT_DOUBLE_EQ(counter.sum(0)->energy_j, 300);
    EXPECT_DOUBLE_EQ(power.sum(0)->energy_j, 150) << "no straight line across the gap";
}

TEST(EnergyLine, LeavesAGapOfMissingSamplesOut) {
    EnergyLine line(false, 2 * second);
    line.edge(0, true, 0);
    line.edge(11 * second, false, 0);
    line.add(0, 100);
    line.add(second, 100);
    line.add(10 * second, 100);
    line.add(11 * second, 100);
    EXPECT_DOUBLE_EQ(line.sum(0)->energy_j, 200);
}

TEST(EnergyLine, TakesACounterThatWentBackwardsAsReset) {
    EnergyLine line(true, 5 * second);
    line.edge(0, true, 0);
    line.edge(3 * second, false, 0);
    line.add(0, 1000);
    line.add(second, 1100);
    line.add(2 * second, 10);
    line.add(3 * second, 60);
    EXPECT_DOUBLE_EQ(line.sum(0)->energy_j, 150);
}

TEST(EnergyLine, TellsNothingFromLessThanTwoSamples) {
    EnergyLine line(true, second);
    line.edge(0, true, 0);
    EXPECT_FALSE(line.sum(0));
    line.add(0, 5);
    EXPECT_FALSE(line.sum(0));
}

TEST(EnergyLine, AnOpenSpanDoesNotCount) {
    EnergyLine line(true, 5 * second);
    line.edge(0, true, 1);
    line.edge(second, false, 1);
    line.edge(second, true, 1);
    line.add(0, 0);
    line.add(4 * second, 400);
    EXPECT_DOUBLE_EQ(line.sum(1)->energy_j, 100);
}

TEST(EnergyLine, TellsWhatItsEnergyIsOf) {
    EnergyLine power(false, 2 * second);
    EnergyLine counter(true, 2 * second);
    for (EnergyLine* line : {&power, &counter}) {
        line->edge(second / 4, true, 0);
        line->edge(11 * second, false, 0);
        for (const std::int64_t at : {0, 1, 7, 9}) {
            line->add(at * second, at == 7 ? 50 : 100);
        }
    }
    EXPECT_DOUBLE_EQ(power.sum(0)->covered_s, 0.75 + 2) << "neither the gap nor what no sample follows";
    EXPECT_DOUBLE_EQ(counter.sum(0)->covered_s, 8.75);
    EXPECT_DOUBLE_EQ(counter.sum(0)->reach_s, 0.25 + 2);
    EXPECT_EQ(counter.sum(0)->resets, 1U);
    EXPECT_EQ(power.sum(0)->resets, 0U);
    EXPECT_DOUBLE_EQ(power.peak(), 100);
}

/// Any cutting of time into adjacent spans adds up to the whole.
TEST(EnergyLine, SpansAddUpToTheWhole) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        EnergyLine line(round % 2 == 0, second);
        std::int64_t time = 0;
        double value = 0;
        line.add(0, 0);
        line.edge(1, true, 0);
        line.edge(1, true, 1);
        for (int i = 0; i < 50; ++i) {
            const std::int64_t cut = time + 1 + static_cast<std::int64_t>(random() % 1'000'000);
            line.edge(cut, false, 1);
            line.edge(cut, true, 1);
            time = cut + static_cast<std::int64_t>(random() % 1'000'000);
            value = round % 2 == 0 ? value + random() % 1000 : random() % 1000;
            line.add(time, value);
        }
        line.edge(time, false, 0);
        line.edge(time, false, 1);
        line.add(time + 1, value);
        EXPECT_NEAR(line.sum(1)->energy_j, line.sum(0)->energy_j, 1e-6 * (1 + std::abs(line.sum(0)->energy_j)));
    }
}

class TotalsOfAGpu : public testing::Test {
  protected:
    void add(std::uint32_t source, std::int64_t time_ns, std::initializer_list<double> values) {
        Row row{.time_ns = time_ns, .read_ns = 0, .source = source, .values = {}};
        std::ranges::copy(values, row.values.begin());
        totals_->add(row);
    }
    void make(std::vector<sensors::Metric> fast) {
        sources_.push_back(std::make_unique<FakeSource>(source_info("nvml", "gpu0", std::move(fast)),
                                                        [](std::span<double>) {}));
        sources_.push_back(std::make_unique<FakeSource>(
            source_info("nvml.energy", "gpu0", {sensors::Metric::gpu_energy_j}, true),
            [](std::span<double>) {}));
        totals_.emplace(devices_, sources_, 1, 1);
    }
    std::vector<sensors::Device> devices_{device("gpu0", "gpu")};
    Sources sources_;
    std::optional<Totals> totals_;
};

TEST_F(TotalsOfAGpu, KeepsCounterAndIntegralSideBySide) {
    make({sensors::Metric::gpu_busy_pct, sensors::Metric::gpu_power_w});
    totals_->command_edge(0, true);
    for (int i = 0; i <= 4; ++i) {
        add(0, i * second, {50, 200});
        add(1, i * second, {1000.0 + 210 * i});
    }
    totals_->command_edge(4 * second, false);
    const auto entries = totals_->entries();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].method, "counter");
    EXPECT_DOUBLE_EQ(*entries[0].counter_j, 840);
    EXPECT_DOUBLE_EQ(*entries[0].integrated_j, 800);
    EXPECT_DOUBLE_EQ(*entries[0].best(), 840);
}

TEST_F(TotalsOfAGpu, ACounterThatCannotBeTrueGivesWayToTheIntegral) {
    const double nan = std::nan("");
    for (const auto& [doubt, readings] : std::initializer_list<std::pair<std::string, std::array<double, 5>>>{
             {"did not move", {100, 100, 100, 100, 100}},
             {"stood still", {0, 200, 200, 200, 200}},
             {"stood still", {0, 200, 200, 200, 400}},
             {"was reset", {0, 200, 400, 0, 200}},
             {"gave no readings for a while", {0, 200, nan, nan, nan}},
             {"contradicts the power", {0, 10, 20, 30, 40}},
             {"contradicts the power", {0, 2000, 4000, 6000, 8000}},
         }) {
        sources_.clear();
        make({sensors::Metric::gpu_power_w});
        totals_->command_edge(0, true);
        for (int i = 0; i <= 4; ++i) {
            add(0, i * second, {200});
            add(1, i * second, {readings[static_cast<std::size_t>(i)]});
        }
        totals_->command_edge(4 * second, false);
        const auto entry = totals_->entries().at(0);
        EXPECT_EQ(entry.doubt, doubt);
        EXPECT_EQ(entry.method, "sampled") << doubt;
        EXPECT_DOUBLE_EQ(entry.best().value(), 800) << doubt;
    }
}

TEST_F(TotalsOfAGpu, APowerThatStandsStillSaysNothingAgainstACounterThatMoves) {
    make({sensors::Metric::gpu_power_w});
    totals_->command_edge(0, true);
    for (int i = 0; i <= 620; ++i) {
        add(0, i * second, {600});  // it froze in the first seconds
        add(1, i * second, {600.0 * std::min(i, 20) + 80.0 * std::max(i - 20, 0)});
    }
    totals_->command_edge(620 * second, false);
    const auto entry = totals_->entries().at(0);
    EXPECT_EQ(entry.doubt, "");
    EXPECT_DOUBLE_EQ(entry.best().value(), 60000);
}

TEST_F(TotalsOfAGpu, ACounterAloneThatDidNotMoveTellsNothing) {
    make({sensors::Metric::gpu_busy_pct});
    totals_->command_edge(0, true);
    add(1, 0, {7});
    add(1, second / 20, {7});
    totals_->command_edge(second / 20, false);
    EXPECT_EQ(totals_->entries().at(0).doubt, "did not move");
    EXPECT_FALSE(totals_->entries().at(0).best());
}

TEST_F(TotalsOfAGpu, ALostDeviceCoversOnlyPartOfTheCommand) {
    make({sensors::Metric::gpu_power_w});
    totals_->command_edge(0, true);
    totals_->epoch_edge(0, Message::Event::begin, 0);
    for (int i = 0; i <= 4; ++i) {
        add(0, i * second, {i < 2 ? 200 : std::nan("")});
        add(1, i * second, {i < 2 ? 200.0 * i : std::nan("")});
    }
    totals_->epoch_edge(4 * second, Message::Event::end, 0);
    totals_->command_edge(4 * second, false);
    const auto entry = totals_->entries().at(0);
    EXPECT_DOUBLE_EQ(entry.best().value(), 200);
    EXPECT_DOUBLE_EQ(entry.covered_s, 1);
    EXPECT_FALSE(entry.covers(4));
    EXPECT_FALSE(entry.epochs_j) << "no epoch was covered whole";
}

TEST_F(TotalsOfAGpu, PrefersTheInstantPower) {
    make({sensors::Metric::gpu_power_w, sensors::Metric::gpu_power_instant_w});
    totals_->command_edge(0, true);
    add(0, 0, {1, 100});
    add(0, second, {1, 100});
    totals_->command_edge(second, false);
    EXPECT_DOUBLE_EQ(*totals_->entries().at(0).integrated_j, 100);
    EXPECT_FALSE(totals_->entries().at(0).counter_j);
}

TEST_F(TotalsOfAGpu, EpochsAreThoseOfOneRank) {
    make({sensors::Metric::gpu_power_w});
    totals_->command_edge(0, true);
    totals_->epoch_edge(0, Message::Event::end, 0);  // an end without a begin
    for (const auto event : {Message::Event::begin, Message::Event::end}) {
        totals_->epoch_edge(event == Message::Event::begin ? second : 3 * second, event, 4);
        totals_->epoch_edge(event == Message::Event::begin ? second : 3 * second, event, 5);
    }
    for (int i = 0; i <= 4; ++i) {
        add(0, i * second, {100});
    }
    EXPECT_EQ(totals_->epochs().count, 1U);
    EXPECT_DOUBLE_EQ(totals_->epochs().seconds, 2);
    EXPECT_DOUBLE_EQ(*totals_->entries().at(0).epochs_j, 200);
}

TEST_F(TotalsOfAGpu, AnAbortedEpochCountsForNothing) {
    make({sensors::Metric::gpu_power_w});
    totals_->command_edge(0, true);
    totals_->epoch_edge(0, Message::Event::begin, 0);
    totals_->epoch_edge(second, Message::Event::abort, 0);
    totals_->epoch_edge(2 * second, Message::Event::begin, 0);
    totals_->epoch_edge(3 * second, Message::Event::end, 0);
    for (int i = 0; i <= 4; ++i) {
        add(0, i * second, {100});
    }
    EXPECT_EQ(totals_->epochs().count, 1U);
    EXPECT_EQ(totals_->epochs().aborted, 1U);
    EXPECT_DOUBLE_EQ(totals_->epochs().seconds, 1);
    EXPECT_DOUBLE_EQ(*totals_->entries().at(0).epochs_j, 100);
}

TEST_F(TotalsOfAGpu, ADeviceWithoutEnergyIsAbsent) {
    make({sensors::Metric::gpu_busy_pct});
    add(0, 0, {1});
    add(0, second, {1});
    EXPECT_TRUE(totals_->entries().empty());
}

}  // namespace
}  // namespace joulemark::meter
