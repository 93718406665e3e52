// SPDX-License-Identifier: Apache-2.0
#include "meter/run_writer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "fakes.h"

namespace joulemark::meter {
namespace {

using enum sensors::Metric;

class RunWriterTest : public testing::Test {
  protected:
    static Sources make_sources() {
        const auto nothing = [](std::span<double>) {};
        Sources sources;
        sources.push_back(std::make_unique<FakeSource>(
            source_info("nvml", "gpu0", {gpu_throttle_reasons, gpu_power_w}), nothing));
        sources.push_back(
            std::make_unique<FakeSource>(source_info("nvml.energy", "gpu0", {gpu_energy_j}, true), nothing));
        sources.push_back(std::make_unique<FakeSource>(source_info("rapl", "cpu0", {cpu_energy_j}), nothing));
        return sources;
    }
    std::unique_ptr<RunWriter> make(bool simulated = false) {
        return std::make_unique<RunWriter>(folder_ / "run", nlohmann::json{{"schema", 1}}, sources_, totals_,
                                           simulated);
    }
    static Row row(std::uint32_t source, std::int64_t time_ns, std::initializer_list<double> values) {
        Row row{.time_ns = time_ns, .read_ns = 7, .source = source, .values = {}};
        std::ranges::copy(values, row.values.begin());
        return row;
    }
    const TemporaryFolder folder_;
    std::vector<sensors::Device> devices_{device("gpu0", "gpu"), device("cpu0", "cpu")};
    Sources sources_ = make_sources();
    Totals totals_{devices_, sources_, 10, 1};
};

TEST_F(RunWriterTest, EverySourceFillsItsOwnColumns) {
    const auto writer = make();
    RowChannel& channel = writer->channel(16);
    channel.push(row(0, 100, {4, 250.5}));
    channel.push(row(1, 200, {12345.678}));
    channel.push(row(0, 300, {std::nan(""), std::nan("")}));
    channel.push(row(2, 400, {1}));
    writer->stop();
    const std::vector<std::vector<std::string>> gpu{
        {"time_ns", "read_ns", "device", "power_w", "energy_j", "throttle_reasons"},
        {"100", "7", "gpu0", "250.5", "", "4"},
        {"200", "7", "gpu0", "", "12345.678", ""},
        {"300", "7", "gpu0", "", "", ""}};
    EXPECT_EQ(table(folder_ / "run/gpu.csv"), gpu);
    EXPECT_EQ(table(folder_ / "run/cpu.csv").size(), 2U);
    EXPECT_EQ(table(folder_ / "run/node.csv").size(), 1U);
    EXPECT_EQ(writer->counts().rows, 4U);
    EXPECT_EQ(writer->counts().lost, 0U);
}

TEST_F(RunWriterTest, MessagesBecomeRegionsAndEpochs) {
    const auto writer = make();
    Message message;
    message.name = "epoch";
    message.index = 0;
    message.event = Message::Event::begin;
    writer->message(message, 1'000'000'000);
    message.event = Message::Event::end;
    message.loss = 0.5;
    writer->message(message, 3'000'000'000);
    writer->stop();
    const auto regions = table(folder_ / "run/regions.csv");
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2][0], "3000000000");
    EXPECT_EQ(regions[2][8], "0.5");
    EXPECT_EQ(totals_.epochs().count, 1U);
}

TEST_F(RunWriterTest, CountsRowsThatFoundNoRoom) {
    const auto writer = make();
    RowChannel& channel = writer->channel(1);
    constexpr int pushed = 100'000;
    for (int i = 0; i < pushed; ++i) {
        channel.push(row(0, i, {0, 1}));
    }
    writer->stop();
    const auto counts = writer->counts();
    EXPECT_GT(counts.lost, 0U);
    EXPECT_EQ(counts.rows + counts.lost, static_cast<std::uint64_t>(pushed));
}

TEST_F(RunWriterTest, SimulatedTimeWaitsForTheWriter) {
    const auto writer = make(true);
    RowChannel& channel = writer->channel(4);
    constexpr int pushed = 2'000;
    for (int i = 0; i < pushed; ++i) {
        channel.push(row(0, i, {0, 1}));
    }
    writer->stop();
    EXPECT_EQ(writer->counts().rows, static_cast<std::uint64_t>(pushed));
    EXPECT_EQ(writer->counts().lost, 0U);
    EXPECT_EQ(table(folder_ / "run/gpu.csv").size(), pushed + 1U);
}

TEST_F(RunWriterTest, RefusesAFolderThatHoldsARun) {
    make().reset();
    EXPECT_THROW(make(), Error);
}

TEST_F(RunWriterTest, SaysWhenTheFolderCannotBeMade) {
    files::write_atomically(folder_ / "run", "a file");
    EXPECT_THROW(make(), Error);
}

}  // namespace
}  // namespace joulemark::meter
