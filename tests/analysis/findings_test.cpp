// SPDX-License-Identifier: Apache-2.0
// Large-batch knee, hardware crossover, least energy, footprint, published numbers.
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/crossover.h"
#include "analysis/footprint.h"
#include "analysis/least_energy.h"
#include "analysis/metrics.h"
#include "analysis/published.h"
#include "analysis/quality.h"
#include "core/error.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

/// Three seeds per global batch; `error(batch, seed)` is the quality told.
template <typename Error>
std::vector<store::RunRecord> batches(Error error, bool vary_seed = true) {
    std::vector<store::RunRecord> records;
    for (const int batch : {256, 512, 1024, 8192}) {
        for (int seed = 0; seed < 3; ++seed) {
            auto record = run_record(std::to_string(batch) + "-" + std::to_string(seed),
                                     {{"workload", "x"}, {"gpus", 4}, {"global_batch", batch}}, 10, 4);
            record.config["seed"] = vary_seed ? seed : 1;
            auto& last = record.hosts[0].regions.back();
            last.quality = error(batch, seed);
            last.quality_name = "top1_error";
            last.quality_direction = "lower";
            records.push_back(std::move(record));
        }
    }
    return records;
}

TEST(BatchKnee, IsTheLastBatchBeforeQualityWorsens) {
    const Model model =
        analyze(batches([](int batch, int seed) { return (batch < 8192 ? 0.24 : 0.28) + 0.001 * seed; }));
    ASSERT_EQ(model.batch_knees.size(), 1u);
    EXPECT_EQ(model.batch_knees[0].knee, 1024);
    EXPECT_EQ(model.batch_knees[0].beyond, 8192);
    EXPECT_EQ(model.batch_knees[0].levels.size(), 4u);
}

TEST(BatchKnee, ScatterOfSeedsIsNoKnee) {
    const Model model =
        analyze(batches([](int batch, int seed) { return 0.24 + 1e-7 * batch + 0.01 * seed; }));
    EXPECT_FALSE(model.batch_knees[0].knee);
    EXPECT_NE(model.batch_knees[0].reason.find("no batch is significantly worse"), std::string::npos);
}

TEST(BatchKnee, OneSeedOnlyDescribes) {
    const Model model =
        analyze(batches([](int batch, int seed) { return batch < 8192 ? 0.24 : 0.5 + 0 * seed; }, false));
    EXPECT_FALSE(model.batch_knees[0].knee);
    EXPECT_NE(model.batch_knees[0].reason.find("repeats over training seeds"), std::string::npos);
}

/// Two kinds of GPU; the second is faster and hungrier, and overtakes in energy beyond 4 GPUs.
std::vector<store::RunRecord> two_kinds() {
    std::vector<store::RunRecord> records;
    for (const char* name : {"A100", "V100"}) {
        for (const int gpus : {1, 2, 4, 8, 16}) {
            for (int repeat = 0; repeat < 3; ++repeat) {
                const bool fast = name == std::string("A100");
                const double seconds = (fast ? 100 : 180 * std::pow(gpus, 0.2)) / gpus * (1 + 0.001 * repeat);
                auto record = run_record(fmt::format("{}-{}-{}", name, gpus, repeat),
                                         {{"workload", "x"}, {"gpus", gpus}, {"local_batch", 32}}, seconds,
                                         gpus, fast ? 400 : 150);
                for (auto& device : record.hosts[0].run_json["devices"]) {
                    device["name"] = device["component"] == "gpu" ? name : device["name"];
                }
                records.push_back(std::move(record));
            }
        }
    }
    return records;
}

TEST(Hardware, CrossoverIsWhereTheOrderOfEnergiesTurns) {
    const Model model = analyze(two_kinds());
    const auto found = std::ranges::find(model.hardware, "gpus", &HardwareComparison::factor);
    ASSERT_NE(found, model.hardware.end());
    EXPECT_EQ(found->first, "A100");
    ASSERT_EQ(found->rows.size(), 5u);
    EXPECT_LT(found->rows[0].time_ratio.value, 1);
    ASSERT_EQ(found->crossings.size(), 1u);
    EXPECT_LT(found->crossings[0].from, found->crossings[0].to);
}

TEST(Hardware, UnlikeComponentsAreNotCompared) {
    auto records = two_kinds();
    for (auto& record : records) {
        if (record.run.starts_with("A100")) {
            for (auto& region : record.hosts[0].regions) {
                std::erase_if(region.devices, [](const auto& device) { return device.component == "dram"; });
            }
        }
    }
    EXPECT_TRUE(analyze(records).hardware.empty());
}

TEST(LeastEnergy, IsFoundPerSeriesOverCaps) {
    std::vector<store::RunRecord> records;
    for (const int batch : {64, 256}) {
        for (int cap = 100; cap <= 250; cap += 25) {
            const double seconds = 3500 + 72000 * std::exp(-cap / 32.0);
            records.push_back(imported_record(
                std::to_string(records.size()),
                {{"workload", "resnet50"}, {"gpus", 1}, {"local_batch", batch}, {"power_cap_w", cap}},
                {{"epoch_time_s", seconds}, {"mean_power_w", 0.88 * cap}}));
        }
    }
    const Model model = analyze(records);
    ASSERT_EQ(model.least_energy.size(), 2u);
    for (const LeastEnergy& least : model.least_energy) {
        EXPECT_TRUE(least.optimum->interior);
        EXPECT_NEAR(least.optimum->at, 133.8, 1);  // where the derivative of cap x seconds is 0
        EXPECT_EQ(least.measured_at, 125);
        EXPECT_NEAR(least.measured.mean, 0.88 * 125 * (3500 + 72000 * std::exp(-125 / 32.0)), 1e-6);
    }
}

// A plateau below 200 W and steps in power: no product of smooth laws goes through it, and repeats show that.
TEST(LeastEnergy, IsTheMeasuredOneWhereTheLawsMissIt) {
    std::vector<store::RunRecord> records;
    const std::map<int, double> watts{{100, 80}, {150, 118}, {200, 185}, {250, 190}, {300, 260}};
    for (const auto& [cap, power] : watts) {
        for (const double noise : {0.997, 1.0, 1.003}) {
            records.push_back(imported_record(
                std::to_string(records.size()), {{"workload", "resnet50"}, {"gpus", 1}, {"power_cap_w", cap}},
                {{"epoch_time_s", 4000 * std::pow(cap / 100.0, -0.6) * noise}, {"mean_power_w", power}}));
        }
    }
    const Model model = analyze(records);
    ASSERT_EQ(model.least_energy.size(), 1u);
    const LeastEnergy& least = model.least_energy[0];
    EXPECT_FALSE(least.optimum);
    EXPECT_NE(least.reason.find("the scatter of repeats does not explain"), std::string::npos) << least.reason;
    EXPECT_EQ(least.measured_at, 100);
    EXPECT_NEAR(least.measured.mean, 320000, 1);
    EXPECT_EQ(least.measured.n, 3u);
}

TEST(TradeOff, IsSignificantOnlyWhereRepeatsTellEnergiesApart) {
    for (const double noise : {0.001, 0.05}) {
        std::vector<store::RunRecord> records;
        for (const int cap : {200, 250}) {
            for (const double sign : {-1, 0, 1}) {
                records.push_back(imported_record(
                    std::to_string(records.size()), {{"workload", "resnet50"}, {"gpus", 1}, {"power_cap_w", cap}},
                    {{"epoch_time_s", 4000 - 4.0 * cap}, {"mean_power_w", (cap - 10 + 0.35 * (250 - cap)) * (1 + sign * noise)}}));
            }
        }
        const Model model = analyze(records);
        ASSERT_EQ(model.trade_offs.size(), 1u);
        const TradeOff& found = model.trade_offs[0];
        EXPECT_EQ(found.fastest["power_cap_w"], 250);
        EXPECT_EQ(found.frugal["power_cap_w"], 200);
        EXPECT_NEAR(found.energy_ratio.value, 3200 * 207.5 / (3000 * 240.0), 1e-3);
        EXPECT_EQ(found.significant(), noise == 0.001) << noise;
    }
}

TEST(Footprint, IsMeasuredEnergyTimesIntensityAndPrice) {
    auto runs = std::vector{run_metrics(run_record("r", {}, 10))};
    add_footprint(runs, CarbonIntensity::parse("400"), 0.25);
    EXPECT_NEAR(*runs[0].co2e_g, *runs[0].energy_j / 3.6e6 * 400, 1e-9);
    EXPECT_NEAR(*runs[0].cost, *runs[0].energy_j / 3.6e6 * 0.25, 1e-12);
    runs[0].energy_j.reset();
    runs[0].co2e_g.reset();
    add_footprint(runs, CarbonIntensity::parse("400"), std::nullopt);
    EXPECT_FALSE(runs[0].co2e_g);
}

TEST(Footprint, TimeSeriesIsAveragedOverTheRun) {
    const auto path = std::filesystem::temp_directory_path() / "joulemark_carbon_test.csv";
    std::ofstream(path) << "time,g_per_kwh\n1970-01-01T00:00Z,100\n1970-01-01T01:00:00Z,300\n7200,500\n";
    const auto intensity = CarbonIntensity::parse(path.string());
    constexpr std::int64_t hour = 3600 * ns_per_s;
    EXPECT_DOUBLE_EQ(*intensity.mean(0, hour), 100);
    EXPECT_DOUBLE_EQ(*intensity.mean(hour / 2, hour + hour / 2), 200);
    EXPECT_DOUBLE_EQ(*intensity.mean(0, 3 * hour), 300);
    EXPECT_FALSE(intensity.mean(hour, 4 * hour));
    std::ofstream(path) << "time,g_per_kwh\nyesterday,100\n";
    EXPECT_THROW(CarbonIntensity::parse(path.string()), Error);
    std::filesystem::remove(path);
    EXPECT_THROW(CarbonIntensity::parse("-1"), Error);
    EXPECT_THROW(CarbonIntensity::parse("nowhere.csv"), Error);
}

TEST(PublishedNumbers, StandBesideEqualWorkloadsAndComponentsOnly) {
    auto record = run_record("r", {{"workload", "ResNet-50"}}, 10, 4, 300);
    for (auto& device : record.hosts[0].run_json["devices"]) {
        device["name"] = device["component"] == "gpu" ? "NVIDIA A100-SXM4-40GB" : device["name"];
    }
    const Model model = analyze(std::vector{record});
    const auto found =
        std::ranges::find(model.published, "energy_per_gpu_hour_kwh", &PublishedComparison::metric);
    ASSERT_NE(found, model.published.end());
    EXPECT_TRUE(found->comparable);
    EXPECT_DOUBLE_EQ(found->published.low, 0.27);
    for (auto& region : record.hosts[0].regions) {
        std::erase_if(region.devices, [](const auto& device) { return device.component == "dram"; });
    }
    const Model without = analyze(std::vector{record});
    EXPECT_FALSE(without.published[0].comparable);
    EXPECT_NE(without.published[0].reason.find("published over cpu+dram+gpu, measured over cpu+gpu"),
              std::string::npos);
}

TEST(PublishedNumbers, RatiosOfPowerCapsStandBesideTheirOwn) {
    std::vector<store::RunRecord> records;
    for (const auto& [cap, seconds, joules] :
         {std::tuple(250, 100.0, 1000.0), std::tuple(150, 118.0, 775.0)}) {
        records.push_back(
            imported_record("cap" + std::to_string(cap),
                            {{"workload", "ResNet-50"}, {"hardware", "Tesla V100"}, {"power_cap_w", cap}},
                            {{"epoch_time_s", seconds}, {"energy_j", joules}}));
    }
    const Model model = analyze(records);
    ASSERT_EQ(model.published.size(), 2U) << "time and energy at 150 W";
    EXPECT_EQ(model.published[0].metric, "relative_epoch_time_s");
    EXPECT_DOUBLE_EQ(model.published[0].value.mean, 1.18);
    EXPECT_DOUBLE_EQ(model.published[0].published.low, 1.18);
    EXPECT_TRUE(model.published[0].comparable);
    EXPECT_DOUBLE_EQ(model.published[1].value.mean, 0.775);
    EXPECT_FALSE(model.published[1].comparable) << "the components of an imported energy are not known";
}

}  // namespace
}  // namespace joulemark::analysis
