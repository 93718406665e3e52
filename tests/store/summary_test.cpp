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

TEST(Summary, CountsEachJouleOnce) {
    const auto summary = summarise_run(
        run_with({device("gpu0", "gpu", 100, "counter"), device("gpu1", "gpu", 50, "integrated"),
                  device("cpu0", "cpu", 20, "estimated"), device("node", "node", 900, "counter")}));
    EXPECT_EQ(summary->energy_j, 170) << "the node contains its parts";
    EXPECT_EQ(summary->energy_components, "gpu+cpu");
    EXPECT_EQ(summary->energy_method, "counter+estimated+integrated");
    EXPECT_TRUE(summary->estimated);
    EXPECT_EQ(summary->energy_by_component_j.at("node"), 900);
}

TEST(Summary, TakesTheNodeWhereNothingElseIsMeasured) {
    const auto summary = summarise_run(
        run_with({device("gpu0", "gpu", std::nullopt, ""), device("node", "node", 900, "counter")}));
    EXPECT_EQ(summary->energy_j, 900);
    EXPECT_EQ(summary->energy_components, "node");
    EXPECT_EQ(summary->gpus_without_energy, 1u);
}

TEST(Summary, EnergyWithoutASensorIsAbsent) {
    const auto summary = summarise_run(run_with({device("cpu", "cpu", std::nullopt, "")}));
    EXPECT_EQ(summary->energy_j, std::nullopt);
    EXPECT_EQ(summary->joule_per_sample(), std::nullopt);
    EXPECT_EQ(summary->energy_components, "");
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
    EXPECT_EQ(epochs(run), 1);
}

}  // namespace
}  // namespace joulemark::store
