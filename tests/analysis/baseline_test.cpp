// SPDX-License-Identifier: Apache-2.0
#include "analysis/baseline.h"

#include <gtest/gtest.h>

#include "analysis/metrics.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

/// One GPU that idles at `before_w` and `after_w`, and whose epochs have these temperatures.
store::RunRecord heating(double before_w, double after_w, const std::vector<double>& temperatures_c) {
    store::RunRecord record = run_record("r", {{"gpus", 1}}, 10);
    store::HostRecord& host = record.hosts[0];
    std::erase_if(host.regions, [](const auto& region) { return region.name == "epoch"; });
    const auto add = [&](const std::string& name, std::int64_t index, double power_w, double temperature_c) {
        host.regions.push_back(region(host.host, name, index, 100 + static_cast<double>(index),
                                      101 + static_cast<double>(index)));
        host.regions.back().devices = {gpu("gpu0", power_w, 1)};
        host.regions.back().devices[0].temperature_c = temperature_c;
    };
    add("joulemark.idle_before", 0, before_w, 30);
    add("joulemark.idle_after", 0, after_w, 45);
    for (std::size_t i = 0; i < temperatures_c.size(); ++i) {
        add("epoch", static_cast<std::int64_t>(i), 300, temperatures_c[i]);
    }
    return record;
}

TEST(Baseline, IdlePowerIsToldAndNotSubtracted) {
    const auto record = heating(70, 90, {60, 60, 60, 60});
    const Baseline found = baseline(record, 0);
    EXPECT_DOUBLE_EQ(*found.idle_before_w, 70);
    EXPECT_DOUBLE_EQ(*found.idle_after_w, 90);
    const RunMetrics with = run_metrics(record);
    EXPECT_DOUBLE_EQ(*with.baseline.idle_before_w, 70);
    EXPECT_EQ(with.energy_j, run_metrics(run_record("r", {{"gpus", 1}}, 10)).energy_j);
}

TEST(Baseline, WarmUpIsNoSteadyState) {
    const auto record = heating(70, 90, {40, 55, 62, 62.5, 62.4, 62.6});
    EXPECT_FALSE(*baseline(record, 0).steady);
    EXPECT_GT(*baseline(record, 0).temperature_change_k, 10);
    EXPECT_TRUE(*baseline(record, 2).steady) << "once two epochs are called warm-up";
}

TEST(Baseline, TwoEpochsSayNothing) {
    const Baseline found = baseline(heating(70, 90, {40, 60}), 0);
    EXPECT_FALSE(found.steady);
    EXPECT_FALSE(found.temperature_change_k);
}

TEST(Baseline, WithoutIdleTimeThereIsNoIdlePower) {
    EXPECT_FALSE(baseline(run_record("r", {{"gpus", 1}}, 10), 0).idle_before_w);
}

}  // namespace
}  // namespace joulemark::analysis
