// SPDX-License-Identifier: Apache-2.0
#include "store/summary.h"

#include <gtest/gtest.h>

namespace joulemark::store {
namespace {

DeviceMetrics device(const char* id, const char* component, std::optional<double> energy_j,
                     const char* method) {
    DeviceMetrics metrics;
    metrics.device = id;
    metrics.component = component;
    metrics.energy_j = energy_j;
    metrics.energy_method = energy_j ? method : "";
    return metrics;
}

RunRecord run_with(std::vector<DeviceMetrics> devices) {
    RunRecord run;
    HostRecord& host = run.hosts.emplace_back();
    RegionRecord& region = host.regions.emplace_back();
    region.name = "joulemark.command";
    region.end_ns = 10'000'000'000;
    region.devices = std::move(devices);
    return run;
}

RegionSummary summarise(const RunRecord& run) {
    return summarise_run(run).command.value();
}

TEST(Summary, CountsEachJouleOnce) {
    const auto summary = summarise(
        run_with({device("gpu0", "gpu", 100, "counter"), device("gpu1", "gpu", 50, "integrated"),
                  device("cpu0", "cpu", 20, "estimated"), device("node", "node", 900, "counter")}));
    EXPECT_EQ(summary.energy_j, 170) << "the node contains its parts";
    EXPECT_EQ(summary.energy_components, "gpu+cpu");
    EXPECT_EQ(summary.energy_method, "counter+estimated+integrated");
    EXPECT_TRUE(summary.sum.methods().contains("estimated"));
    EXPECT_EQ(summary.sum.by_component().at("node"), 900);
}

TEST(Summary, TakesTheNodeWhereNothingElseIsMeasured) {
    const auto summary = summarise(
        run_with({device("gpu0", "gpu", std::nullopt, ""), device("node", "node", 900, "counter")}));
    EXPECT_EQ(summary.energy_j, 900);
    EXPECT_EQ(summary.energy_components, "node");
    EXPECT_EQ(summary.sum.gpus_without_energy(), 1u);
}

TEST(Summary, EnergyWithoutASensorIsAbsent) {
    const auto summary = summarise(run_with({device("cpu", "cpu", std::nullopt, "")}));
    EXPECT_EQ(summary.energy_j, std::nullopt);
    EXPECT_EQ(summary.joule_per_sample, std::nullopt);
    EXPECT_EQ(summary.energy_components, "");
}

TEST(Summary, AnEpochCountsWhenItHasEndedOnEveryHost) {
    RunRecord run;
    for (int host = 0; host < 2; ++host) {
        HostRecord& record = run.hosts.emplace_back();
        for (int index = 0; index < 2; ++index) {
            RegionRecord& epoch = record.regions.emplace_back();
            epoch.name = "epoch";
            epoch.index = index;
            epoch.open = host == 1 && index == 1;
        }
    }
    EXPECT_EQ(summarise_run(run).epochs, 1u);
}

TEST(Summary, HasNoTotalWithAReasonWhereSomethingIsMissing) {
    auto run = run_with({device("gpu0", "gpu", 100, "counter"), device("gpu1", "gpu", std::nullopt, "")});
    EXPECT_EQ(summarise(run).no_total, "partly measured: gpu");
    EXPECT_EQ(summarise(run).energy_j, std::nullopt);
    EXPECT_EQ(summarise(run).energy_bound_j, std::nullopt);
    EXPECT_EQ(summarise(run).sum.by_component().at("gpu"), 100);

    run = run_with({device("gpu0", "gpu", 100, "counter")});
    run.hosts.emplace_back().host = "silent";
    EXPECT_EQ(summarise(run).no_total, "not on every host");
    run.expected_hosts = {"lost"};
    EXPECT_EQ(summarise(run).no_total, "a host is missing");
    EXPECT_EQ(summarise(run).energy_j, std::nullopt);
    EXPECT_EQ(summarise(run).wall_time_s, 10);
    EXPECT_EQ(summarise_run(run).gpu_hours, std::nullopt);
}

TEST(Summary, JoulesPerSampleAreOfTheTimedEpochs) {
    auto run = run_with({device("gpu0", "gpu", 100, "counter")});
    run.factors = {{"warmup_epochs", "1"}};
    for (int index = 0; index < 2; ++index) {
        RegionRecord epoch = run.hosts[0].regions[0];
        epoch.name = "epoch";
        epoch.index = index;
        epoch.samples = 10;
        epoch.devices[0].energy_j = 40 - 10 * index;
        run.hosts[0].regions.push_back(epoch);
    }
    EXPECT_EQ(summarise(run).joule_per_sample, 3);
    EXPECT_EQ(summarise(run).mean_power_w, 10);
    EXPECT_EQ(summarise_regions(run).at(1).joule_per_sample, 4);
    EXPECT_EQ(summarise_run(run).epochs, 2u);
    EXPECT_EQ(summarise_run(run).epochs_timed, 1u);
}

TEST(Summary, ARowOfATableHasNoTimeUnlessItGivesOne) {
    RunRecord run;
    run.hosts.emplace_back().run_json = {{"imported", {{"metrics", {{"energy_j", 900}}}}}};
    EXPECT_EQ(summarise(run).energy_j, 900);
    EXPECT_EQ(summarise(run).energy_method, "imported");
    EXPECT_EQ(summarise(run).wall_time_s, std::nullopt);
    EXPECT_EQ(summarise(run).mean_power_w, std::nullopt);
    run.factors = {{"gpus", 2}};
    run.hosts[0].run_json["imported"]["metrics"]["gpu_hours"] = 1;
    EXPECT_EQ(summarise(run).wall_time_s, 1800);
    EXPECT_EQ(summarise(run).mean_power_w, 0.5);
}

}  // namespace
}  // namespace joulemark::store
