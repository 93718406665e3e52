// SPDX-License-Identifier: Apache-2.0
//
// Source::read runs in the sampling loop: it must not allocate. A binary of its own, since it replaces
// operator new.
#include <gtest/gtest.h>

#include "counting_new.h"
#include "sensors/fake_nvml.h"
#include "sensors/fixture.h"
#include "sensors/nvml_backend.h"

namespace joulemark::sensors {
namespace {

std::uint64_t allocations_of(Source& source) {
    std::vector<double> values(source.info().metrics.size());
    const std::uint64_t before = allocations;
    for (int i = 0; i < 100; ++i) {
        source.read(values);
    }
    return allocations - before;
}

void expect_none(const Machine& machine) {
    ASSERT_FALSE(machine.sources.empty());
    for (const auto& source : machine.sources) {
        EXPECT_EQ(allocations_of(*source), 0U) << source->info().name << " " << source->info().device;
    }
}

TEST(Allocation, is_counted) {
    const std::uint64_t before = allocations;
    ::operator delete(::operator new(1));  // called by name, so that the compiler may not leave it out
    EXPECT_EQ(allocations - before, 1U);
}

TEST(Allocation, none_in_any_read_below_a_tree) {
    expect_none(discover_without_gpus({}, FixtureTree("intel_2_sockets")));
    expect_none(discover_without_gpus({}, FixtureTree("acpi_node_meter")));
    expect_none(discover_without_gpus({}, FixtureTree("cray_ex")));
    expect_none(discover_without_gpus({.root = "/", .estimate_cpu = true, .all_devices = false},
                                      FixtureTree("virtual_machine"), {{"JOULEMARK_CPU_RATED_W", "100"}}));
}

TEST(Allocation, none_in_any_read_of_a_gpu) {
    FakeGpu gpu;
    const nvml::api::Table table = fake_table();
    Machine machine;
    machine.clock = std::make_shared<MonotonicClock>();
    const Options options;
    const FileTree files("/nonexistent");
    const Environment environment;
    Discovery discovery{options, files, environment, machine};
    const std::vector<nvml::Device> gpus{{&table, gpu.handle(), 0}};
    add_nvml_gpus(discovery, gpus, {}, false);
    expect_none(machine);
    gpu.fails["power"] = nvml::api::error_gpu_is_lost;
    gpu.fails["energy"] = nvml::api::error_gpu_is_lost;
    expect_none(machine);
}

}  // namespace
}  // namespace joulemark::sensors
