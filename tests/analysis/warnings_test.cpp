// SPDX-License-Identifier: Apache-2.0
#include "analysis/warnings.h"

#include <array>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"
#include "store/copies.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

std::string text_of(const Model& model, const std::string& code) {
    const auto found = std::ranges::find(model.warnings, code, &Warning::code);
    return found == model.warnings.end() ? "" : found->text;
}

std::vector<store::RunRecord> repeats(int n) {
    std::vector<store::RunRecord> records;
    for (int i = 0; i < n; ++i) {
        records.push_back(run_record("r" + std::to_string(i), {{"workload", "x"}}, 10));
    }
    return records;
}

TEST(Warnings, ThreeCleanRepeatsHaveNone) {
    const Model model = analyze(repeats(3));
    EXPECT_TRUE(model.warnings.empty()) << model.warnings.front().text;
}

TEST(Warnings, OneRunIsPreliminaryAndTwoAreFew) {
    EXPECT_NE(text_of(analyze(repeats(1)), "preliminary").find("1 of 1"), std::string::npos);
    const Model two = analyze(repeats(2));
    EXPECT_EQ(text_of(two, "preliminary"), "");
    EXPECT_NE(text_of(two, "few_repeats"), "");
}

TEST(Warnings, ACopiedRunCountsOnce) {
    auto records = repeats(3);
    for (auto& record : records) {
        record.hosts[0].run_json.update({{"run", record.run}, {"boot_id", "b"}, {"start_ns", 5}});
    }
    records.push_back(records[1]);
    records.back().run = "a copy of r1";  // sorts before what it was copied from
    const Model model = analyze(records);
    ASSERT_EQ(model.configurations.size(), 1U);
    EXPECT_EQ(model.configurations[0].runs.size(), 3U);
    EXPECT_EQ(model.runs[0].run, "a copy of r1");
    EXPECT_EQ(model.runs[0].status, "copy");
    EXPECT_TRUE(text_of(model, "copy").starts_with("a copy of r1: "));
}

TEST(Warnings, ACopiedHostCountsOnce) {
    auto records = repeats(1);
    records[0].hosts[0].run_json.update({{"run", "r0"}, {"boot_id", "b"}, {"start_ns", 5}});
    const double energy_j = *analyze(records).runs[0].energy_j;
    records[0].hosts.push_back(records[0].hosts[0]);
    records[0].hosts.back().host = "node0-copy";
    records[0].expected_hosts.push_back("node0-copy");
    store::drop_copied_hosts(records[0]);  // as every load does
    const Model model = analyze(records);
    EXPECT_EQ(model.runs[0].hosts, std::vector<std::string>{"node0"});
    EXPECT_DOUBLE_EQ(*model.runs[0].energy_j, energy_j);
    EXPECT_NE(text_of(model, "copied_host"), "");
}

TEST(Warnings, RunsThatMetOnADeviceAreToldHowLong) {
    auto records = repeats(4);  // of 23 s each
    for (std::size_t i = 0; i < records.size(); ++i) {
        auto& host = records[i].hosts[0];
        host.run_json.update({{"boot_id", "b"}, {"start_ns", i}});
        host.run_json["devices"][0]["uuid"] = "GPU-" + std::to_string(i);
        // r1 begins 13 s into r0, r2 20 s into r0; r3 begins when r2 ends.
        const std::int64_t begin_ns = nanoseconds(std::array{0, 13, 20, 43}[i]);
        for (auto& region : host.regions) {
            region.start_ns += begin_ns;
            region.end_ns += begin_ns;
        }
    }
    Model model = analyze(records);
    const auto told = [&](std::size_t run) {
        const auto& warnings = model.runs[run].warnings;
        const auto warning = std::ranges::find(warnings, "device_shared", &Warning::code);
        return warning == warnings.end() ? "" : warning->text.substr(0, warning->text.find(" % "));
    };
    EXPECT_EQ(told(0), "gpu1 was metered by r1 too, for 43");
    EXPECT_EQ(told(1), "gpu1 was metered by r2 too, for 100");
    EXPECT_EQ(told(2), "gpu1 was metered by r1 too, for 70");
    EXPECT_EQ(told(3), "");

    records[1].hosts[0].run_json["boot_id"] = "another machine";
    model = analyze(records);
    EXPECT_EQ(told(0), "gpu1 was metered by r2 too, for 13");
    EXPECT_EQ(told(1), "");
}

TEST(Warnings, EnergyThatGapsLeaveOpenIsKeptOutOfConfigurations) {
    auto records = repeats(3);
    for (auto& device : records[2].hosts[0].regions[0].devices) {
        device.covered_s /= 2;
        device.energy_j = *device.energy_j / 2;
        device.energy_bound_j = *device.energy_j;
    }
    const Model model = analyze(records);
    EXPECT_TRUE(text_of(model, "energy_uncertain").starts_with("r2: "));
    const RunMetrics& run = model.runs[2];
    EXPECT_TRUE(run.energy_j);
    EXPECT_EQ(run.mean_power_w, std::nullopt) << "half of the energy over all of the time";
    EXPECT_EQ(run.energy_per_gpu_hour_kwh, std::nullopt);
    EXPECT_EQ(run.regions[0].mean_power_w, std::nullopt);
    EXPECT_TRUE(run.regions[1].mean_power_w) << "the epochs were measured";
    EXPECT_TRUE(model.runs[0].mean_power_w);
    EXPECT_EQ(model.configurations[0].values("energy_j").size(), 2U);
    EXPECT_EQ(model.configurations[0].values("epoch_time_s").size(), 3U);
}

TEST(Warnings, StatusIsExplained) {
    for (const char* status : {"failed", "cut", "incomplete"}) {
        auto records = repeats(3);
        records[1].status = status;
        if (status == std::string("incomplete")) {
            records[1].expected_hosts = {"node0", "node1"};
        }
        const std::string text = text_of(analyze(records), status);
        EXPECT_TRUE(text.starts_with("r1: ")) << status << ": " << text;
    }
    auto records = repeats(1);  // every host is there, one of them without its run.json
    records[0].status = "incomplete";
    EXPECT_NE(text_of(analyze(records), "incomplete").find("run.json of a host is missing"),
              std::string::npos);
}

TEST(Warnings, CounterAndIntegralMayDifferByThreePercent) {
    auto records = repeats(3);
    for (auto& device : records[0].hosts[0].regions[0].devices) {
        if (device.energy_integrated_j) {
            device.energy_integrated_j = *device.energy_counter_j * 0.96;
        }
    }
    EXPECT_NE(text_of(analyze(records), "counter_vs_integral").find("-4.0 %"), std::string::npos);
}

TEST(Warnings, CoverageThrottlingAndControls) {
    auto records = repeats(3);
    auto& host = records[2].hosts[0];
    host.regions[0].devices[0].covered_s *= 0.97;
    host.regions[0].devices[1].covered_s *= 0.95;
    host.regions[0].devices[0].throttled_pct = 40;
    host.run_json["controls"] = {
        {"power_cap_w", {{"gpu0", {{"requested", 150}, {"enforced", 200}, {"previous", 250}}}}}};
    host.run_json["warnings"] = json{"the energy counter of gpu1 stood still"};
    const Model model = analyze(records);
    EXPECT_NE(text_of(model, "coverage").find("gpu0 on node0 cover 97.0 %, of gpu1 on node0 cover 95.0 %"),
              std::string::npos);
    EXPECT_NE(text_of(model, "throttled"), "");
    EXPECT_NE(text_of(model, "control_not_enforced").find("gpu0"), std::string::npos);
    EXPECT_NE(text_of(model, "meter").find("stood still"), std::string::npos);
}

TEST(Warnings, AnotherNumberOfGpusThanMeteredIsTold) {
    auto records = repeats(1);
    EXPECT_EQ(text_of(analyze(records), "gpus_not_metered"), "");
    records[0].factors["gpus"] = 8;
    EXPECT_NE(text_of(analyze(records), "gpus_not_metered").find("has 8 GPUs, 2 were metered"),
              std::string::npos);
}

TEST(Warnings, ThrottlingUnderACapIsWhatACapDoes) {
    auto records = repeats(3);
    for (auto& record : records) {
        record.factors["power_cap_w"] = 150;
        record.hosts[0].regions[0].devices[0].throttled_pct = 40;
    }
    EXPECT_EQ(text_of(analyze(records), "throttled"), "");
}

TEST(Warnings, SimulatedAndEstimatedAreSaid) {
    auto records = repeats(3);
    records[0].hosts[0].run_json["simulated"] = true;
    for (auto& source : records[1].hosts[0].run_json["sources"]) {
        if (source["device"] == "cpu0") {
            source["method"] = "estimated";
        }
    }
    const Model model = analyze(records);
    EXPECT_NE(text_of(model, "simulated").find("1 of 3"), std::string::npos);
    EXPECT_NE(text_of(model, "estimated").find("1 of 3"), std::string::npos);
}

TEST(Warnings, UnlikeComponentsAreNotCompared) {
    auto records = repeats(3);
    for (auto& region : records[0].hosts[0].regions) {
        std::erase_if(region.devices, [](const auto& device) { return device.component == "dram"; });
    }
    EXPECT_NE(text_of(analyze(records), "unlike_components").find("cpu + dram + gpu; cpu + gpu"),
              std::string::npos)
        << text_of(analyze(records), "unlike_components");
}

TEST(Warnings, RepeatsOfOneSeedShowHardwareNoiseOnly) {
    auto records = repeats(3);
    for (auto& record : records) {
        record.config["seed"] = 42;
    }
    EXPECT_NE(text_of(analyze(records), "train_seed_fixed"), "");
    records[1].config["seed"] = 43;
    EXPECT_EQ(text_of(analyze(records), "train_seed_fixed"), "");
}

/// Five configurations of four interleaved repeats; `seconds(configuration, position)` is the epoch time.
template <typename Seconds>
std::vector<store::RunRecord> interleaved(Seconds seconds) {
    std::vector<store::RunRecord> records;
    for (int position = 0; position < 20; ++position) {
        const int cap = 100 + position % 5 * 25;
        auto record = run_record("p" + std::to_string(position), {{"workload", "x"}, {"power_cap_w", cap}},
                                 seconds(cap, position));
        record.hosts[0].run_json["study"] = {{"name", "s"}, {"repeat", position / 5}, {"position", position}};
        records.push_back(record);
    }
    return records;
}

TEST(Warnings, DriftOverTheStudy) {
    const auto wobble = [](int position) { return 1 + 0.002 * (position * 7 % 5 - 2); };
    const Model steady = analyze(interleaved([&](int cap, int at) { return 1000.0 / cap * wobble(at * 3); }));
    EXPECT_EQ(text_of(steady, "drift"), "");
    const Model drifting =
        analyze(interleaved([&](int cap, int at) { return 1000.0 / cap * wobble(at) * (1 + 0.003 * at); }));
    EXPECT_NE(text_of(drifting, "drift").find("+5."), std::string::npos) << text_of(drifting, "drift");
}

TEST(Warnings, OutlierRuns) {
    const Model model = analyze(interleaved([](int cap, int at) {
        return 1000.0 / cap * (1 + 0.002 * (at * 7 % 5 - 2)) * (at == 12 ? 1.2 : 1);
    }));
    EXPECT_TRUE(text_of(model, "outlier").starts_with("p12: "));
    EXPECT_EQ(std::ranges::count(model.warnings, "outlier", &Warning::code), 1);
}

TEST(Warnings, CapsThatNeverBind) {
    auto records = interleaved([](int, int) { return 10.0; });
    for (auto& record : records) {
        const int cap = record.factors["power_cap_w"];
        for (auto& device : record.hosts[0].regions[0].devices) {
            device.max_power_w = std::min(cap, 140);
        }
    }
    const std::string text = text_of(analyze(records), "cap_without_effect");
    EXPECT_TRUE(text.starts_with("2 cap levels")) << text;  // 150 and 175 W; 200 W is the reference
}

}  // namespace
}  // namespace joulemark::analysis
