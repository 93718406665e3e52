// SPDX-License-Identifier: Apache-2.0
#include "store/window_sum.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "../meter/fakes.h"
#include "meter/run_document.h"

namespace joulemark::store {
namespace {

DeviceMetrics measured(const char* id, const char* component, double energy_j, double covered_s = 10) {
    DeviceMetrics device;
    device.device = id;
    device.component = component;
    device.energy_j = energy_j;
    device.energy_bound_j = energy_j / 4;
    device.energy_method = "counter";
    device.covered_s = covered_s;
    return device;
}

/// Over ten seconds.
WindowSum sum_of(std::vector<DeviceMetrics> devices, const nlohmann::json& run_json = {}) {
    RegionRecord window;
    window.end_ns = 10'000'000'000;
    window.devices = std::move(devices);
    WindowSum sum;
    sum.add(window, HostInventory(run_json));
    return sum;
}

/// As the meter writes run.json, not as this test believes that it does.
TEST(HostInventory, TheMetersRunJsonNamesTheDevicesThatTellEnergy) {
    using enum sensors::Metric;
    sensors::Machine machine;
    machine.clock = std::make_shared<MonotonicClock>();
    const auto add = [&](const char* id, const char* component, std::vector<sensors::Metric> metrics,
                         const char* scope) {
        if (std::ranges::find(machine.devices, id, &sensors::Device::id) == machine.devices.end()) {
            machine.devices.push_back(meter::device(id, component));
        }
        sensors::SourceInfo info = meter::source_info("s", id, std::move(metrics));
        info.scope = scope;
        machine.sources.push_back(
            std::make_unique<meter::FakeSource>(std::move(info), [](std::span<double>) {}));
    };
    add("gpu0", "gpu", {gpu_power_w, gpu_busy_pct}, "gpu board");
    add("gpu0", "gpu", {gpu_energy_j}, "gpu module");
    add("gpu1", "gpu", {gpu_power_instant_w}, "gpu board");
    add("gpu2", "gpu", {gpu_power_limit_w, gpu_memory_power_w, gpu_sm_clock_mhz}, "gpu board");
    add("cpu0", "cpu", {cpu_energy_j}, "cpu package");
    add("cpu", "cpu", {cpu_busy_pct, cpu_process_s}, "node");
    add("node", "node", {node_power_w}, "node wall");
    meter::RunOptions options;
    options.command = {"train"};
    options.calibrated = false;
    const HostInventory inventory(meter::run_document(options, {}, machine, 1, nlohmann::json::object()));
    EXPECT_EQ(inventory.energy_devices, (std::set<std::string>{"cpu0", "gpu0", "gpu1", "node"}));
    EXPECT_EQ(inventory.gpus, (std::set<std::string>{"gpu0", "gpu1", "gpu2"}));
    EXPECT_TRUE(inventory.module_scope);
}

TEST(WindowSum, OfHostsIsPartlyMeasuredWhereOneOfThemIs) {
    WindowSum sum = sum_of({measured("gpu0", "gpu", 100), measured("cpu0", "cpu", 10)});
    const nlohmann::json two{{"devices", {{{"device", "gpu0"}, {"component", "gpu"}},
                                          {{"device", "gpu1"}, {"component", "gpu"}}}}};
    sum.add(sum_of({measured("gpu0", "gpu", 100)}, two));
    EXPECT_EQ(sum.energy_j(), std::nullopt);
    EXPECT_EQ(sum.energy_bound_j(), std::nullopt);
    EXPECT_EQ(sum.partly_measured(), std::vector<std::string>{"gpu"});
    EXPECT_EQ(sum.by_component().at("gpu"), 200);
    EXPECT_EQ(sum.gpus(), 3u);
    EXPECT_EQ(sum.gpus_without_energy(), 1u);
}

TEST(WindowSum, IsUncertainWhereGapsLeaveMuchOpen) {
    EXPECT_FALSE(sum_of({measured("gpu0", "gpu", 100)}).uncertain()) << "a wide bound alone";
    EXPECT_TRUE(sum_of({measured("gpu0", "gpu", 100, 5)}).uncertain());
    EXPECT_FALSE(sum_of({measured("gpu0", "gpu", 100), measured("node", "node", 300, 5)}).uncertain())
        << "gaps in what is not added";
}

TEST(WindowSum, PutsMethodsSideBySideOverTheDevicesThatHaveThemAll) {
    auto both = measured("gpu0", "gpu", 100), counter = measured("gpu1", "gpu", 50);
    auto cpu = measured("cpu0", "cpu", 10);
    both.energy_counter_j = 100;
    both.energy_integrated_j = 99;
    counter.energy_counter_j = 50;
    cpu.energy_counter_j = 10;
    EXPECT_EQ(sum_of({both, counter, cpu}).side_by_side().counter_j, 100);
    EXPECT_EQ(sum_of({both, counter, cpu}).side_by_side("cpu").counter_j, 10);
    EXPECT_EQ(sum_of({counter, cpu}).side_by_side().counter_j, 60);
    EXPECT_EQ(sum_of({counter, cpu}).side_by_side("gpu").counter_j, 50);
}

}  // namespace
}  // namespace joulemark::store
