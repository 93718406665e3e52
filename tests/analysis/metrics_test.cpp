// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

bool warned(const RunMetrics& run, const std::string& code) {
    return std::ranges::any_of(run.warnings, [&](const Warning& warning) { return warning.code == code; });
}

TEST(Configurations, ATagKeepsANoteAndTellsNoConfigurationsApart) {
    std::vector<store::RunRecord> records;
    for (const char* attempt : {"1", "2", "3"}) {
        records.push_back(run_record(attempt, {{"workload", "x"}, {"gpus", 1}}, 10, 1));
        records.back().hosts[0].run_json["tags"] = {{"try", attempt}};
    }
    const Model model = analyze(records);
    ASSERT_EQ(model.configurations.size(), 1u);
    EXPECT_EQ(model.configurations[0].runs.size(), 3u);
}

TEST(RunMetrics, FollowTheirDefinitions) {
    // 2 GPUs at 200 W, CPU 100 W, DRAM 10 W; 23 s of command, 2 epochs of 10 s.
    const RunMetrics run = run_metrics(run_record("r", {{"workload", "resnet50"}, {"local_batch", 64}}, 10));
    EXPECT_DOUBLE_EQ(*run.wall_time_s, 23);
    EXPECT_DOUBLE_EQ(*run.training_speed_s, 11.5);  // the protocol's: start-up and warm-up included
    EXPECT_DOUBLE_EQ(*run.epoch_time_s, 10);
    EXPECT_DOUBLE_EQ(*run.samples_per_s, 100);
    EXPECT_DOUBLE_EQ(*run.energy_j, 510 * 23);
    EXPECT_DOUBLE_EQ(run.energy_by_component_j.at("gpu"), 400 * 23);
    EXPECT_DOUBLE_EQ(run.energy_by_component_j.at("cpu"), 100 * 23);
    EXPECT_DOUBLE_EQ(run.energy_by_component_j.at("dram"), 10 * 23);
    EXPECT_DOUBLE_EQ(run.energy_by_node_j.at("node0"), 510 * 23);
    EXPECT_DOUBLE_EQ(*run.epoch_energy_j, 5100);
    EXPECT_DOUBLE_EQ(*run.joule_per_sample, 5.1);
    EXPECT_DOUBLE_EQ(*run.gpu_hours, 2 * 23 / 3600.0);
    EXPECT_DOUBLE_EQ(*run.mean_power_w, 510);
    // The identity: energy per GPU hour is mean total power per GPU.
    EXPECT_DOUBLE_EQ(*run.energy_per_gpu_hour_kwh, *run.mean_power_w / 2 / 1000);
    EXPECT_DOUBLE_EQ(*run.updates_per_gpu_hour, 40 / (2 * 20 / 3600.0));
    EXPECT_DOUBLE_EQ(*run.gpu_busy_pct, 90);
    EXPECT_EQ(run.factors["global_batch"], 128);
    EXPECT_EQ(run.factors["hardware"], "V100");
}

TEST(RunMetrics, CounterAndIntegralAreOfTheSameDevices) {
    // The CPU has a counter but no sampled power: only the GPUs can be compared.
    const RunMetrics run = run_metrics(run_record("r", {}, 10));
    EXPECT_DOUBLE_EQ(*run.energy_counter_j, 400 * 23);
    EXPECT_DOUBLE_EQ(*run.energy_integrated_j, 400 * 23 * 1.01);
    EXPECT_DOUBLE_EQ(*run.energy_protocol_j, 400 * 23 * 1.02);
}

TEST(RunMetrics, WarmUpEpochsCountForTrainingSpeedOnly) {
    auto record = run_record("r", {{"warmup_epochs", 1}}, 10, 2, 200, 3);
    auto& regions = record.hosts[0].regions;
    regions[1].end_ns += nanoseconds(5);  // the first epoch takes 15 s
    const RunMetrics run = run_metrics(record);
    EXPECT_EQ(run.epochs, 3u);
    EXPECT_EQ(run.epochs_timed, 2u);
    EXPECT_DOUBLE_EQ(*run.epoch_time_s, 10);
    EXPECT_DOUBLE_EQ(*run.training_speed_s, 11);
    EXPECT_FALSE(warned(run, "slow_first_epoch"));
    record.factors.erase("warmup_epochs");
    const RunMetrics all = run_metrics(record);
    EXPECT_NEAR(*all.epoch_time_s, 35 / 3.0, 1e-9);
    EXPECT_TRUE(warned(all, "slow_first_epoch"));
    record.factors["warmup_epochs"] = 3;
    const RunMetrics none = run_metrics(record);
    EXPECT_FALSE(none.epoch_time_s);
    EXPECT_TRUE(warned(none, "no_epoch_after_warmup"));
}

store::RunRecord two_hosts() {
    auto record = run_record("r", {{"gpus", 4}}, 10);
    auto second = run_record("r", {{"gpus", 4}}, 12).hosts[0];
    second.host = "node1";
    for (auto& region : second.regions) {
        region.host = "node1";
    }
    record.hosts.push_back(second);
    record.expected_hosts = {"node0", "node1"};
    return record;
}

TEST(RunMetrics, EnergiesAddOverHostsAndTimesAreTheSlowest) {
    const RunMetrics run = run_metrics(two_hosts());
    EXPECT_DOUBLE_EQ(*run.epoch_time_s, 12);
    EXPECT_DOUBLE_EQ(*run.wall_time_s, 27);
    EXPECT_DOUBLE_EQ(*run.energy_j, 510 * (23 + 27));
    EXPECT_DOUBLE_EQ(*run.epoch_energy_j, 510 * (10 + 12));
    EXPECT_DOUBLE_EQ(run.energy_by_node_j.at("node1"), 510 * 27);
    EXPECT_DOUBLE_EQ(*run.samples_per_s, 2000 / 12.0);
    EXPECT_DOUBLE_EQ(*run.gpu_hours, 4 * 27 / 3600.0);
}

TEST(RunMetrics, NodesMayHaveDifferentNumbersOfGpus) {
    const auto whole = two_hosts();
    auto record = whole;
    store::HostRecord& small = record.hosts[1];
    small.run_json = host_json("node1", 1);
    double left_out_j = 0;
    for (auto& region : small.regions) {
        std::erase_if(region.devices, [](const auto& device) {
            return device.component == "gpu" && device.device != "gpu0";
        });
    }
    for (const auto& region : whole.hosts[1].regions) {
        for (const auto& device : region.devices) {
            if (region.name == "joulemark.command" && device.component == "gpu" && device.device != "gpu0") {
                left_out_j += *device.energy_j;
            }
        }
    }
    const RunMetrics run = run_metrics(record);
    EXPECT_GT(left_out_j, 0);
    EXPECT_DOUBLE_EQ(*run.energy_j, *run_metrics(whole).energy_j - left_out_j);
    EXPECT_EQ(run.gpu_count, run_metrics(whole).gpu_count - 1);
}

TEST(RunMetrics, ClocksOfHostsMayDifferByHours) {
    auto record = two_hosts();
    for (auto& region : record.hosts[1].regions) {
        region.start_ns += 3 * 3600 * ns_per_s;
        region.end_ns += 3 * 3600 * ns_per_s;
    }
    const RunMetrics run = run_metrics(record), plain = run_metrics(two_hosts());
    EXPECT_EQ(run.energy_j, plain.energy_j);
    EXPECT_EQ(run.epoch_time_s, plain.epoch_time_s);
    EXPECT_EQ(run.wall_time_s, plain.wall_time_s);
    EXPECT_EQ(run.warnings.size(), plain.warnings.size());
}

TEST(RunMetrics, AMissingHostLeavesNoTotal) {
    auto record = two_hosts();
    record.hosts.pop_back();
    record.status = "incomplete";
    const RunMetrics run = run_metrics(record);
    EXPECT_EQ(run.missing_hosts, std::vector<std::string>{"node1"});
    EXPECT_FALSE(run.energy_j);
    EXPECT_FALSE(run.epoch_energy_j);
    EXPECT_FALSE(run.gpu_hours);
    EXPECT_FALSE(run.energy_per_gpu_hour_kwh);
    EXPECT_EQ(run.energy_by_node_j.size(), 1u);  // what there is, under its own name
}

TEST(RunMetrics, EpochsMarkedOnOneHostHaveTimeButNoEnergy) {
    auto record = two_hosts();
    std::erase_if(record.hosts[1].regions, [](const auto& region) { return region.name == "epoch"; });
    const RunMetrics run = run_metrics(record);
    EXPECT_DOUBLE_EQ(*run.epoch_time_s, 10);
    EXPECT_FALSE(run.epoch_energy_j);
    EXPECT_FALSE(run.joule_per_sample);
    EXPECT_TRUE(run.energy_j);
    EXPECT_TRUE(warned(run, "epochs_on_some_hosts"));
}

TEST(RunMetrics, AGpuWithoutEnergyLeavesNoTotal) {
    auto record = run_record("r", {}, 10);
    for (auto& region : record.hosts[0].regions) {
        region.devices[1].energy_j.reset();
    }
    const RunMetrics run = run_metrics(record);
    EXPECT_FALSE(run.energy_j);
    EXPECT_DOUBLE_EQ(run.energy_by_component_j.at("gpu"), 200 * 23);
    EXPECT_EQ(run.provenance["energy_j"]["partly_measured"], nlohmann::json{"gpu"});
}

TEST(RunMetrics, APackageWithoutEnergyLeavesNoTotal) {
    auto record = run_record("r", {}, 10);
    record.hosts[0].run_json["devices"].push_back({{"device", "cpu1"}, {"component", "cpu"}});
    record.hosts[0].run_json["sources"].push_back(record.hosts[0].run_json["sources"][2]);
    record.hosts[0].run_json["sources"].back()["device"] = "cpu1";
    for (auto& region : record.hosts[0].regions) {
        region.devices.push_back(component("cpu1", "cpu", 0, 10));
        region.devices.back().energy_j.reset();
    }
    const RunMetrics run = run_metrics(record);
    EXPECT_EQ(run.energy_j, std::nullopt);
    EXPECT_EQ(run.provenance["energy_j"]["partly_measured"], nlohmann::json{"cpu"});
    EXPECT_EQ(run.regions[1].energy_j, std::nullopt);
    EXPECT_EQ(run.regions[1].energy_bound_j, std::nullopt) << "of no energy";
}

TEST(RunMetrics, AGpuThatNeverAnsweredLeavesNoTotal) {
    auto record = run_record("r", {}, 10);
    record.hosts[0].regions[0].devices.erase(record.hosts[0].regions[0].devices.begin());
    EXPECT_FALSE(run_metrics(record).energy_j);
}

TEST(RunMetrics, EachJouleCountsOnce) {
    auto record = run_record("r", {}, 10);
    auto& devices = record.hosts[0].regions[0].devices;
    devices.push_back(component("node", "node", 800 * 23, 23));
    const RunMetrics wall = run_metrics(record);
    EXPECT_DOUBLE_EQ(*wall.energy_j, 510 * 23);  // the wall meter contains the others
    EXPECT_DOUBLE_EQ(wall.energy_by_component_j.at("node"), 800 * 23);

    for (auto& source : record.hosts[0].run_json["sources"]) {
        if (source["source"] == "nvml.energy") {
            source["scope"] = "gpu module";
        }
    }
    devices.pop_back();
    EXPECT_DOUBLE_EQ(*run_metrics(record).energy_j, 400 * 23);  // a module's counter contains CPU and memory
}

TEST(RunMetrics, WithoutSensorsEnergyIsAbsentNotZero) {
    auto record = run_record("r", {}, 10, 0);
    for (auto& region : record.hosts[0].regions) {
        region.devices.clear();
    }
    record.hosts[0].run_json = host_json("node0", 0, false);
    const RunMetrics run = run_metrics(record);
    EXPECT_DOUBLE_EQ(*run.epoch_time_s, 10);
    EXPECT_FALSE(run.energy_j);
    EXPECT_FALSE(run.gpu_hours);  // no GPU: nothing to count hours of
    EXPECT_FALSE(run.mean_power_w);
    EXPECT_FALSE(run.gpu_busy_pct);
    EXPECT_NE(run.provenance["energy_j"]["text"].get<std::string>().find("no energy sensor"),
              std::string::npos);
}

TEST(RunMetrics, ProvenanceSaysWhatTheTotalContainsAndLacks) {
    const RunMetrics run = run_metrics(run_record("r", {}, 10));
    EXPECT_EQ(run.provenance["energy_j"]["text"], "CPU + DRAM + GPU; not measured: network, PSU, cooling");
    const auto& gpus = run.provenance["components"]["gpu"];
    EXPECT_EQ(gpus["devices"], 2);
    EXPECT_EQ(gpus["scope"], nlohmann::json{"gpu board"});
    EXPECT_EQ(gpus["resolution_s"], 0.02);
    EXPECT_EQ(gpus["sensor_accuracy_pct"], 5);
    EXPECT_EQ(gpus["achieved_hz"], 9.9);
    EXPECT_DOUBLE_EQ(gpus["coverage_pct"], 100);
    EXPECT_NEAR(gpus["bound_j"], 400 * 23 * 0.001, 1e-9);
    EXPECT_EQ(run.provenance["epoch_time_s"]["marked_by"], "socket");
    EXPECT_EQ(run.provenance["estimated"], false);
}

TEST(RunMetrics, OpenEpochsOfACutRunDoNotCount) {
    auto record = run_record("r", {}, 10, 2, 200, 3);
    record.status = "cut";
    record.hosts[0].regions.back().open = true;
    const RunMetrics run = run_metrics(record);
    EXPECT_EQ(run.epochs, 2u);
    EXPECT_FALSE(run.training_speed_s);
    EXPECT_FALSE(run.usable());
}

TEST(RunMetrics, QualityIsTheLastOneTold) {
    auto record = run_record("r", {}, 10);
    for (std::size_t i = 1; i < 3; ++i) {
        auto& epoch = record.hosts[0].regions[i];
        epoch.quality_name = "top1_error";
        epoch.quality_direction = "lower";
        epoch.quality = 0.9 - 0.1 * static_cast<double>(i);
    }
    const auto quality = run_metrics(record).quality.value();
    EXPECT_EQ(quality.name, "top1_error");
    EXPECT_EQ(quality.direction, "lower");
    EXPECT_DOUBLE_EQ(quality.value, 0.7);
}

TEST(RunMetrics, ImportedRowsGiveWhatFollowsFromThem) {
    const auto row = imported_record("row1", {{"gpus", 4}, {"epochs", 100}, {"dataset_samples", 20018}},
                                     {{"energy_j", 0.4606 * 3.6e6}, {"gpu_hours", 1.717}});
    const RunMetrics run = run_metrics(row);
    EXPECT_NEAR(*run.wall_time_s, 1.717 / 4 * 3600, 1e-9);
    EXPECT_NEAR(*run.epoch_time_s, 1.717 / 4 * 36, 1e-9);
    EXPECT_NEAR(*run.energy_per_gpu_hour_kwh, 0.4606 / 1.717, 1e-12);
    EXPECT_NEAR(*run.joule_per_sample, 0.4606 * 3.6e6 / 100 / 20018, 1e-12);
    const auto power = imported_record("row2", {{"power_cap_w", 150}, {"gpus", 1}},
                                       {{"epoch_time_s", 4000}, {"mean_power_w", 145}});
    EXPECT_DOUBLE_EQ(*run_metrics(power).epoch_energy_j, 580000);
    EXPECT_EQ(run.provenance["energy_j"]["method"], "imported");
}

TEST(RunMetrics, ImportedRowsWithoutEpochsHaveNoEpoch) {
    const RunMetrics run =
        run_metrics(imported_record("row", {{"gpus", 4}}, {{"energy_j", 5e6}, {"gpu_hours", 2.0}}));
    EXPECT_DOUBLE_EQ(*run.wall_time_s, 1800);
    EXPECT_EQ(run.epoch_time_s, std::nullopt);
    EXPECT_EQ(run.epoch_energy_j, std::nullopt);
    EXPECT_EQ(run.training_speed_s, std::nullopt);
    EXPECT_EQ(std::ranges::count(run.warnings, "epochs_not_given", &Warning::code), 1);
}

}  // namespace
}  // namespace joulemark::analysis
