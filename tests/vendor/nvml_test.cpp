// SPDX-License-Identifier: Apache-2.0
//
// The NVML wrapper against the look-alike library, and so both against the ground truth.
#include "vendor/nvml.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/units.h"
#include "sim/simulated.h"
#include "sim/virtual_clock.h"

namespace joulemark::nvml {
namespace {

using sim::Simulated;

/// The library open on simulated GPUs, which a driver in this process can load.
struct Opened {
    explicit Opened(std::string_view accelerator = "H200", unsigned gpus = 2,
                    std::vector<std::string> faults = {}, sim::ClockMode clock = sim::ClockMode::simulated)
        : simulated(accelerator, gpus, std::move(faults), clock) {
        setenv("JOULEMARK_NVML", JOULEMARK_BINARY_DIR "/sim/libnvidia-ml.so.1", 1);
        setenv("JOULEMARK_SIM", simulated.path.c_str(), 1);
        auto opened = Library::open();
        if (!opened) {
            throw std::runtime_error(opened.failure().reason);
        }
        library = *opened;
        devices = library->devices().devices;
    }

    /// Loads GPU 0 for some seconds of the simulated clock.
    void load(double watts, double s, bool capped = false) {
        const auto driver = sim::Participant::join(state, true);
        const std::int64_t end = state.now_ns() + nanoseconds(s);
        state.append(0, {watts, 0.9, 1500, std::uint64_t{8} << 30, capped}, end + ns_per_s, driver->owner());
        driver->sleep_until(end);
        // Keeps the load to look at: the owner below never leaves.
        state.append(0, {watts, 0.9, 1500, std::uint64_t{8} << 30, capped}, end + ns_per_s, 0);
    }

    Simulated simulated;
    sim::State& state = simulated.state();
    std::shared_ptr<Library> library;
    std::vector<Device> devices;
};

TEST(Nvml, WithoutSimulatedGpusTheDriverIsNotLoaded) {
    setenv("JOULEMARK_NVML", JOULEMARK_BINARY_DIR "/sim/libnvidia-ml.so.1", 1);
    for (const char* path : {"", "/nonexistent/gpus.sim", "/dev/null"}) {
        setenv("JOULEMARK_SIM", path, 1);
        const auto opened = Library::open();
        ASSERT_FALSE(opened);
        EXPECT_NE(opened.failure().reason.find("driver is not loaded"), std::string::npos);
    }
    setenv("JOULEMARK_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    EXPECT_FALSE(Library::open());
}

TEST(Nvml, IdentityOfEveryGpu) {
    const Opened sim("V100", 3);
    ASSERT_EQ(sim.devices.size(), 3u);
    EXPECT_TRUE(sim.library->simulated());
    EXPECT_NE(sim.library->driver_version().find("simulated"), std::string::npos);
    for (unsigned i = 0; i < 3; ++i) {
        const Device& device = sim.devices[i];
        EXPECT_EQ(device.index(), static_cast<int>(i));
        EXPECT_EQ(device.name().value, "Simulated NVIDIA V100");
        EXPECT_EQ(device.uuid().value, sim.state.uuid(i));
        EXPECT_EQ(device.pci_bus_id().value, fmt::format("00000000:{:02x}:00.0", 0x10 + i));
        EXPECT_EQ(device.minor_number().value, i);
        EXPECT_EQ(device.architecture().value, api::architecture_volta);
        EXPECT_EQ(device.memory().value.total, std::uint64_t{32} << 30);
        EXPECT_EQ(device.mig_enabled().status, api::error_not_supported);
    }
}

TEST(Nvml, ReadingsOfALoadedGpu) {
    Opened sim;
    const auto before = sim.devices[0].energy_j();
    sim.load(500, 10, true);
    const Device& device = sim.devices[0];
    EXPECT_NEAR(device.power_w().value, 500, 1e-3);
    EXPECT_NEAR(device.power_instant_w().value, 500, 1e-3);
    EXPECT_NEAR(device.power_average_w().value, 500, 1e-3);
    EXPECT_EQ(device.memory_power_w().status, api::error_not_supported);
    EXPECT_EQ(device.energy_mj().value, static_cast<std::uint64_t>(device.energy_j().value * 1e3 + 0.5));
    EXPECT_NEAR(device.energy_j().value - before.value, 5000, 150 * 0.5);  // refresh and lag: 0.15 s
    EXPECT_EQ(device.utilization().value.gpu, 90u);
    EXPECT_GT(device.memory().value.used, std::uint64_t{8} << 30);
    EXPECT_EQ(device.memory().value.used + device.memory().value.free, device.memory().value.total);
    EXPECT_EQ(device.sm_clock_mhz().value, 1500);
    EXPECT_EQ(device.memory_clock_mhz().value, 3201);
    EXPECT_EQ(device.sm_clock_max_mhz().value, 1980);
    EXPECT_GT(device.temperature_c().value, sim.devices[1].temperature_c().value);
    EXPECT_EQ(device.throttle_reasons().value, api::reason_sw_power_cap);
    EXPECT_EQ(sim.devices[1].throttle_reasons().value, api::reason_gpu_idle);
    EXPECT_NEAR(sim.devices[1].power_w().value, 75, 1e-3);
}

TEST(Nvml, PowerAveragesWhereTheChipDoes) {
    for (const auto& [accelerator, averages] : {std::pair("V100", false), std::pair("A100", false),
                                                std::pair("H100", true), std::pair("H200", true)}) {
        Opened sim(accelerator);
        sim.load(200, 0.3);
        EXPECT_NEAR(sim.devices[0].power_instant_w().value, 200, 1e-3) << accelerator;
        EXPECT_EQ(static_cast<bool>(sim.devices[0].power_average_w()), averages) << accelerator;
        EXPECT_EQ(sim.devices[0].power_w().value < 199, averages) << accelerator;
    }
}

TEST(Nvml, PowerLimits) {
    const Opened sim;
    const Device& device = sim.devices[1];
    EXPECT_EQ(device.power_limit_range_w().value, std::pair(200.0, 700.0));
    EXPECT_EQ(device.power_limit_default_w().value, 700);
    EXPECT_EQ(device.set_power_limit_w(350.5), api::success);
    EXPECT_DOUBLE_EQ(device.power_limit_w().value, 350.5);
    EXPECT_DOUBLE_EQ(device.power_limit_enforced_w().value, 350.5);
    EXPECT_EQ(sim.devices[0].power_limit_w().value, 700);
    EXPECT_EQ(device.set_power_limit_w(199), api::error_invalid_argument);
    EXPECT_EQ(device.set_power_limit_w(701), api::error_invalid_argument);
    EXPECT_DOUBLE_EQ(device.power_limit_w().value, 350.5);
}

TEST(Nvml, LockedClocks) {
    Opened sim;
    const Device& device = sim.devices[0];
    const auto clocks = device.supported_sm_clocks_mhz();
    ASSERT_EQ(clocks.value.size(), 110u);
    EXPECT_EQ(clocks.value.front(), 1980u);
    EXPECT_EQ(clocks.value.back(), 345u);
    sim.load(500, 1);
    EXPECT_EQ(device.lock_sm_clock_mhz(0, 1007), api::success);
    EXPECT_EQ(device.sm_clock_mhz().value, 1005);  // the next supported one below
    EXPECT_EQ(device.lock_sm_clock_mhz(1000, 900), api::error_invalid_argument);
    EXPECT_EQ(device.lock_sm_clock_mhz(0, 100), api::error_invalid_argument);
    EXPECT_EQ(device.unlock_sm_clock(), api::success);
    EXPECT_EQ(device.sm_clock_mhz().value, 1500);
}

TEST(Nvml, GpmGivesSmActivityBetweenTwoSamples) {
    Opened sim;
    const api::Table& table = sim.devices[0].table();
    api::GpmSupport support{api::gpm_support_version, 0};
    ASSERT_EQ(table.gpm_support(sim.devices[0].handle(), &support), api::success);
    EXPECT_EQ(support.is_supported_device, 1u);
    auto get = std::make_unique<api::GpmMetricsGet>();
    get->version = api::gpm_metrics_get_version;
    get->num_metrics = 2;
    get->metrics[0].metric_id = api::gpm_sm_util;
    get->metrics[1].metric_id = 199;
    ASSERT_EQ(table.gpm_sample_alloc(&get->sample1), api::success);
    ASSERT_EQ(table.gpm_sample_alloc(&get->sample2), api::success);
    ASSERT_EQ(table.gpm_sample_get(sim.devices[0].handle(), get->sample1), api::success);
    sim.load(500, 10);
    ASSERT_EQ(table.gpm_sample_get(sim.devices[0].handle(), get->sample2), api::success);
    ASSERT_EQ(table.gpm_metrics_get(get.get()), api::success);
    EXPECT_EQ(get->metrics[0].status, api::success);
    EXPECT_NEAR(get->metrics[0].value, 72, 1e-6);
    EXPECT_EQ(get->metrics[1].status, api::error_not_supported);
    table.gpm_sample_free(get->sample1);
    table.gpm_sample_free(get->sample2);
}

TEST(Nvml, BeforeHopperThereIsNoGpm) {
    const Opened sim("A100");
    const api::Table& table = sim.devices[0].table();
    api::GpmSupport support{api::gpm_support_version, 1};
    ASSERT_EQ(table.gpm_support(sim.devices[0].handle(), &support), api::success);
    EXPECT_EQ(support.is_supported_device, 0u);
}

TEST(Nvml, FaultsReachTheirFunctionAndGpuOnly) {
    const Opened sim(
        "H200", 2,
        {"not-supported:nvmlDeviceGetTotalEnergyConsumption#1",
         "no-permission:nvmlDeviceSetPowerManagementLimit", "not-supported:NVML_FI_DEV_POWER_INSTANT"});
    EXPECT_TRUE(sim.devices[0].energy_j());
    EXPECT_EQ(sim.devices[1].energy_j().status, api::error_not_supported);
    EXPECT_EQ(sim.devices[0].set_power_limit_w(500), api::error_no_permission);
    EXPECT_EQ(sim.devices[0].power_instant_w().status, api::error_not_supported);
    EXPECT_TRUE(sim.devices[0].power_average_w());
}

TEST(Nvml, ALostGpuCostsOnlyItself) {
    Opened sim("H200", 3, {"gpu-lost@5#1"});
    EXPECT_TRUE(sim.devices[1].power_w());
    sim.load(500, 10);
    EXPECT_EQ(sim.devices[1].power_w().status, api::error_gpu_is_lost);
    EXPECT_TRUE(sim.devices[2].power_w());
    const auto again = sim.library->devices();
    EXPECT_EQ(again.devices.size(), 2u);
    ASSERT_EQ(again.failures.size(), 1u);
    EXPECT_EQ(again.failures[0].first, 1);
}

TEST(Nvml, BackwardsIndexOrder) {
    const Opened sim("H200", 3, {"index-order"});
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(sim.devices[i].minor_number().value, 2 - i);
        EXPECT_EQ(sim.devices[i].uuid().value, sim.state.uuid(2 - i));
    }
}

TEST(Nvml, MigHidesUtilisationAndListsItsSlices) {
    const Opened sim("A100", 2, {"mig#0"});
    EXPECT_TRUE(sim.devices[0].mig_enabled().value);
    EXPECT_FALSE(sim.devices[1].mig_enabled().value);
    EXPECT_EQ(sim.devices[0].utilization().status, api::error_not_supported);
    EXPECT_TRUE(sim.devices[0].power_w());
    const auto slices = sim.devices[0].mig_uuids();
    ASSERT_EQ(slices.value.size(), 2u);
    EXPECT_TRUE(slices.value[0].starts_with("MIG-"));
    EXPECT_NE(slices.value[0], slices.value[1]);
    EXPECT_TRUE(sim.devices[1].mig_uuids().value.empty());
}

TEST(Nvml, MisuseIsAnAnswerNotACrash) {
    Opened sim;
    const api::Table table = sim.devices[0].table();
    const api::Device handle = sim.devices[0].handle();
    unsigned value = 0;
    EXPECT_EQ(table.power_usage(nullptr, &value), api::error_invalid_argument);
    EXPECT_EQ(table.power_usage(handle, nullptr), api::error_invalid_argument);
    api::Device none = nullptr;
    EXPECT_EQ(table.device_by_index(2, &none), api::error_invalid_argument);
    char name[4];
    EXPECT_EQ(table.name(handle, name, sizeof name), api::error_insufficient_size);
    unsigned few = 3;
    EXPECT_EQ(table.supported_graphics_clocks(handle, 3201, &few, &value), api::error_insufficient_size);
    EXPECT_EQ(few, 110u);
    EXPECT_EQ(table.supported_graphics_clocks(handle, 1, &few, nullptr), api::error_not_found);
    sim.devices.clear();
    sim.library.reset();
    EXPECT_EQ(table.power_usage(handle, &value), api::error_uninitialized);  // it stays loaded
}

TEST(Nvml, UnderTheRealClockASlowCallTakesItsTime) {
    const Opened sim("H200", 1, {"slow:nvmlDeviceGetPowerUsage=30"}, sim::ClockMode::real);
    EXPECT_TRUE(sim.library->simulated());
    const auto clock = sim.library->clock();
    const std::int64_t start = clock->now_ns();
    EXPECT_TRUE(sim.devices[0].power_w());
    const std::int64_t slow = clock->now_ns();
    EXPECT_TRUE(sim.devices[0].energy_j());
    EXPECT_GE(slow - start, 30'000'000);
    EXPECT_GE(clock->now_ns() - slow, 3'500'000);
}

}  // namespace
}  // namespace joulemark::nvml
