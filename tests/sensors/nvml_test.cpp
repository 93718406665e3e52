// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gmock/gmock.h>

#include "sensors/fake_nvml.h"
#include "sensors/fixture.h"
#include "sensors/nvml_backend.h"

namespace joulemark::sensors {
namespace {

namespace api = nvml::api;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;
using testing::Not;

/// The NVML backend over fake GPUs.
struct Nvml {
    std::vector<FakeGpu> gpus;
    std::vector<std::pair<int, Failure>> lost = {};
    Environment environment = {};
    Options options = {};
    bool simulated = false;

    api::Table table = fake_table();
    Machine machine = {};

    Machine& discover() {
        machine = Machine{};
        machine.clock = std::make_shared<MonotonicClock>();
        const FileTree files("/nonexistent");
        Discovery discovery{options, files, environment, machine};
        std::vector<nvml::Device> devices;
        int index = 0;
        for (FakeGpu& gpu : gpus) {
            while (std::ranges::find(lost, index, &std::pair<int, Failure>::first) != lost.end()) {
                ++index;
            }
            devices.emplace_back(&table, gpu.handle(), index++);
        }
        add_nvml_gpus(discovery, devices, lost, simulated);
        return machine;
    }

    Source& source(const std::string& name, const std::string& device = "gpu0") {
        for (const auto& source : machine.sources) {
            if (source->info().name == name && source->info().device == device) {
                return *source;
            }
        }
        throw std::runtime_error("no source " + name);
    }
    double value(const std::string& name, Metric metric) {
        Source& from = source(name);
        const auto& metrics = from.info().metrics;
        return read(from).at(static_cast<std::size_t>(std::ranges::find(metrics, metric) - metrics.begin()));
    }
    const SensorReport& report(const std::string& name, const std::string& quantity) {
        const auto found = std::ranges::find_if(machine.reports, [&](const SensorReport& report) {
            return report.name == name && report.quantity == quantity;
        });
        return found == machine.reports.end() ? throw std::runtime_error("no report " + name) : *found;
    }
    std::vector<std::string> devices() const {
        std::vector<std::string> ids;
        std::ranges::transform(machine.devices, std::back_inserter(ids), &Device::id);
        return ids;
    }
};

TEST(Nvml, one_gpu_gives_quick_metrics_and_a_slow_counter_in_si_units) {
    Nvml nvml{.gpus = {{}}};
    nvml.discover();
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_power_w), 300);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_power_instant_w), 310);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_busy_pct), 97);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_memory_busy_pct), 55);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_memory_used_bytes), 600);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_sm_clock_mhz), 1980);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_memory_clock_mhz), 3201);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_temperature_c), 51);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_power_limit_w), 700);
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_throttle_reasons), 4);
    EXPECT_EQ(nvml.value("nvml.gpm", Metric::gpu_sm_util_pct), 42);
    EXPECT_FALSE(nvml.source("nvml").info().slow);
    EXPECT_TRUE(nvml.source("nvml.energy").info().slow);

    Source& energy = nvml.source("nvml.energy");
    EXPECT_THAT(read(energy), ElementsAre(0));
    nvml.gpus[0].energy_mj += 1500;
    EXPECT_THAT(read(energy), ElementsAre(1.5));
}

TEST(Nvml, device_is_described) {
    Nvml nvml{.gpus = {{}}};
    const Device& device = nvml.discover().devices.at(0);
    EXPECT_EQ(device.id, "gpu0");
    EXPECT_EQ(device.name, "NVIDIA H200");
    EXPECT_EQ(device.uuid, "GPU-0");
    EXPECT_EQ(device.pci_bus_id, "00000000:1b:00.0");
    EXPECT_EQ(device.memory_bytes, 1000U);
    EXPECT_EQ(device.power_limit_w, 700);
    EXPECT_EQ(device.power_limit_min_w, 200);
    EXPECT_EQ(device.component, "gpu");
}

TEST(Nvml, unsupported_query_is_left_out_and_reported) {
    Nvml nvml{.gpus = {{.fails = {{"memory", api::error_not_supported}}}}};
    nvml.discover();
    EXPECT_THAT(nvml.source("nvml").info().metrics, Not(Contains(Metric::gpu_memory_used_bytes)));
    EXPECT_THAT(nvml.source("nvml").info().metrics, Contains(Metric::gpu_power_w));
    EXPECT_EQ(nvml.report("nvml gpu0", "memory used").status, "unavailable");
    EXPECT_THAT(nvml.report("nvml gpu0", "memory used").reason, HasSubstr("does not support"));
}

TEST(Nvml, power_without_permission_costs_only_power) {
    Nvml nvml{.gpus = {{.fails = {{"power", api::error_no_permission}}}}};
    nvml.discover();
    EXPECT_THAT(nvml.source("nvml").info().metrics, Not(Contains(Metric::gpu_power_w)));
    EXPECT_THAT(nvml.report("nvml gpu0", "power").remedy, HasSubstr("root"));
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_busy_pct), 97);
}

TEST(Nvml, read_that_fails_later_is_a_gap_in_that_metric_only) {
    Nvml nvml{.gpus = {{}}};
    nvml.discover();
    nvml.gpus[0].fails["power"] = api::error_gpu_is_lost;
    nvml.gpus[0].fails["energy"] = api::error_gpu_is_lost;
    nvml.gpus[0].fails["gpm"] = api::error_gpu_is_lost;
    EXPECT_THAT(nvml.value("nvml", Metric::gpu_power_w), IsNan());
    EXPECT_EQ(nvml.value("nvml", Metric::gpu_power_instant_w), 310);
    EXPECT_THAT(nvml.value("nvml.energy", Metric::gpu_energy_j), IsNan());
    EXPECT_THAT(nvml.value("nvml.gpm", Metric::gpu_sm_util_pct), IsNan());
    EXPECT_EQ(nvml.source("nvml.energy").events().failed_reads, 1U);
}

TEST(Nvml, no_energy_counter_means_integrating_power_and_says_so) {
    Nvml nvml{.gpus = {{.fails = {{"energy", api::error_not_supported}}}}};
    nvml.discover();
    EXPECT_THROW(nvml.source("nvml.energy"), std::runtime_error);
    EXPECT_THAT(nvml.report("nvml.energy gpu0", "energy").reason, HasSubstr("integral of the sampled power"));
    EXPECT_THAT(nvml.source("nvml").info().metrics, Contains(Metric::gpu_power_w));
}

TEST(Nvml, one_lost_gpu_costs_only_itself) {
    Nvml nvml{.gpus = {{.uuid = "GPU-0"}, {.uuid = "GPU-2"}},
              .lost = {{1, nvml::explain(api::error_gpu_is_lost)}}};
    nvml.discover();
    EXPECT_THAT(nvml.devices(), ElementsAre("gpu0", "gpu2"));
    EXPECT_EQ(nvml.machine.gpus_on_node, 3U);
    EXPECT_THAT(nvml.machine.warnings,
                ElementsAre(HasSubstr("gpu1 is left out: the GPU has fallen off the bus")));
    EXPECT_EQ(nvml.report("nvml gpu1", "energy").status, "unavailable");
}

TEST(Nvml, indices_behind_a_lost_gpu_keep_their_meaning) {
    Nvml nvml{.gpus = {{.uuid = "GPU-0"}, {.uuid = "GPU-2"}},
              .lost = {{1, nvml::explain(api::error_gpu_is_lost)}},
              .environment = {{"CUDA_VISIBLE_DEVICES", "2"}}};
    nvml.discover();
    EXPECT_THAT(nvml.devices(), ElementsAre("gpu2"));
}

TEST(Nvml, gpus_of_other_jobs_are_not_metered) {
    Nvml nvml{.gpus = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}},
              .environment = {{"CUDA_VISIBLE_DEVICES", "GPU-1"}}};
    nvml.discover();
    EXPECT_THAT(nvml.devices(), ElementsAre("gpu1"));
    EXPECT_EQ(nvml.machine.gpus_on_node, 2U);
    EXPECT_EQ(nvml.machine.visibility_source, "CUDA_VISIBLE_DEVICES=GPU-1");
    EXPECT_EQ(nvml.report("nvml gpu0", "energy").status, "available");
    EXPECT_THAT(nvml.report("nvml gpu0", "energy").reason, HasSubstr("not this job's"));
}

TEST(Nvml, doctor_sees_all_and_says_which_are_not_the_jobs) {
    Nvml nvml{.gpus = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}}, .environment = {{"CUDA_VISIBLE_DEVICES", ""}}};
    nvml.options.all_devices = true;
    nvml.discover();
    EXPECT_THAT(nvml.devices(), ElementsAre("gpu0", "gpu1"));
    EXPECT_THAT(nvml.report("nvml gpu0", "power").reason, HasSubstr("CUDA_VISIBLE_DEVICES="));
}

TEST(Nvml, mig_board_is_counted_once_and_flagged_shared) {
    Nvml nvml{.gpus = {{.mig = true}}};
    nvml.discover();
    EXPECT_THAT(nvml.devices(), ElementsAre("gpu0"));
    EXPECT_THAT(nvml.machine.warnings, ElementsAre(HasSubstr("split by MIG")));
    EXPECT_THAT(nvml.report("nvml.energy gpu0", "energy").reason, HasSubstr("shared by all its slices"));
}

TEST(Nvml, gpu_on_which_others_compute_is_flagged_shared) {
    Nvml nvml{.gpus = {{.processes = 2}, {}}};
    nvml.discover();
    EXPECT_THAT(nvml.machine.warnings, ElementsAre(HasSubstr("gpu0 is shared: 2 processes")));
    EXPECT_THAT(nvml.report("nvml.energy gpu0", "energy").reason, HasSubstr("shared with other processes"));
    EXPECT_THAT(nvml.report("nvml.energy gpu1", "energy").reason, Not(HasSubstr("shared")));
}

TEST(Nvml, memory_errors_are_counted_where_the_gpu_has_ecc) {
    Nvml nvml{.gpus = {{.ecc = 120}}};
    nvml.discover();
    Source& energy = nvml.source("nvml.energy");
    ASSERT_THAT(energy.info().metrics, ElementsAre(Metric::gpu_energy_j, Metric::gpu_ecc_corrected_errors,
                                                   Metric::gpu_ecc_uncorrected_errors));
    std::array<double, 3> values{};
    energy.read(values);
    EXPECT_EQ(values[1], 120);
    EXPECT_EQ(values[2], 12);

    Nvml without{.gpus = {{}}};
    without.discover();
    EXPECT_THAT(without.source("nvml.energy").info().metrics, ElementsAre(Metric::gpu_energy_j));
    EXPECT_THAT(without.report("nvml.energy gpu0", "ecc uncorrected errors").status, "unavailable");
}

TEST(Nvml, grace_hopper_counter_is_the_modules) {
    Nvml nvml{.gpus = {{.name = "NVIDIA GH200 480GB"}}};
    nvml.discover();
    EXPECT_EQ(nvml.source("nvml.energy").info().scope, "gpu module");
    EXPECT_EQ(nvml.source("nvml").info().scope, "gpu board");
}

TEST(Nvml, default_power_reading_is_told_per_generation) {
    EXPECT_TRUE(power_meaning("NVIDIA H200", api::architecture_hopper).default_is_average);
    EXPECT_TRUE(power_meaning("NVIDIA RTX A6000", api::architecture_ampere).default_is_average);
    EXPECT_FALSE(power_meaning("NVIDIA A100-SXM4-40GB", api::architecture_ampere).default_is_average);
    EXPECT_FALSE(power_meaning("NVIDIA A30", api::architecture_ampere).default_is_average);
    EXPECT_FALSE(power_meaning("Tesla V100-SXM2-16GB", api::architecture_volta).default_is_average);
    EXPECT_THAT(power_meaning("NVIDIA A100-SXM4-40GB", api::architecture_ampere).usage, HasSubstr("quarter"));
}

TEST(Nvml, average_power_is_kept_only_where_it_differs_from_the_default) {
    Nvml hopper{.gpus = {{}}};
    hopper.discover();
    EXPECT_THAT(hopper.source("nvml").info().metrics, Not(Contains(Metric::gpu_power_average_w)));
    Nvml ampere{.gpus = {{.name = "NVIDIA A100-SXM4-40GB", .architecture = api::architecture_ampere}}};
    ampere.discover();
    EXPECT_THAT(ampere.source("nvml").info().metrics, Contains(Metric::gpu_power_average_w));
}

TEST(Nvml, no_performance_counters_before_hopper) {
    Nvml nvml{.gpus = {{.name = "NVIDIA A100", .architecture = api::architecture_ampere}}};
    nvml.discover();
    EXPECT_THROW(nvml.source("nvml.gpm"), std::runtime_error);
    EXPECT_THAT(nvml.report("nvml.gpm gpu0", "sm util").reason, HasSubstr("lock out profilers"));
}

TEST(Nvml, performance_metrics_come_in_si_units_and_unsupported_ones_are_reported) {
    Nvml nvml{.gpus = {{}}};
    nvml.discover();
    EXPECT_THAT(nvml.source("nvml.gpm").info().metrics,
                ElementsAre(Metric::gpu_sm_util_pct, Metric::gpu_pcie_tx_bytes_per_s));
    EXPECT_EQ(nvml.value("nvml.gpm", Metric::gpu_pcie_tx_bytes_per_s), 42.0 * 1024 * 1024);
    EXPECT_EQ(nvml.report("nvml.gpm gpu0", "nvlink tx").status, "unavailable");
}

TEST(Nvml, performance_counters_that_have_not_refreshed_are_a_gap_and_no_zero) {
    Nvml nvml{.gpus = {{}}};
    nvml.discover();
    nvml.gpus[0].sm_util = std::nan("");
    EXPECT_THAT(read(nvml.source("nvml.gpm")), ElementsAre(IsNan(), IsNan()));
    nvml.gpus[0].sm_util = 7;
    EXPECT_EQ(nvml.value("nvml.gpm", Metric::gpu_sm_util_pct), 7);
}

TEST(Nvml, memory_power_is_told_apart_and_module_power_only_where_there_is_a_module) {
    Nvml board{.gpus = {{}}};
    board.discover();
    EXPECT_EQ(board.value("nvml", Metric::gpu_memory_power_w), 60);
    EXPECT_THAT(board.source("nvml").info().metrics, Not(Contains(Metric::gpu_module_power_w)));
    Nvml module{.gpus = {{.name = "NVIDIA GH200 480GB"}}};
    module.discover();
    EXPECT_EQ(module.value("nvml", Metric::gpu_module_power_w), 600);
}

TEST(Nvml, performance_samples_are_freed) {
    {
        Nvml nvml{.gpus = {{}}};
        nvml.discover();
        EXPECT_EQ(live_gpm_samples(), 2);
    }
    EXPECT_EQ(live_gpm_samples(), 0);
}

TEST(Nvml, library_without_optional_functions_still_gives_what_it_has) {
    Nvml nvml{.gpus = {{}}};
    nvml.table = api::Table{};
    nvml.table.power_usage = fake_table().power_usage;
    nvml.discover();
    EXPECT_THAT(nvml.source("nvml").info().metrics, ElementsAre(Metric::gpu_power_w));
}

TEST(Nvml, simulated_gpus_are_marked_everywhere) {
    Nvml nvml{.gpus = {{}}, .simulated = true};
    nvml.discover();
    EXPECT_TRUE(nvml.machine.devices.at(0).simulated);
    for (const auto& source : nvml.machine.sources) {
        EXPECT_EQ(source->info().method, "simulated");
    }
    for (const SensorReport& report : nvml.machine.reports) {
        EXPECT_TRUE(report.method == "simulated" || report.status != "used") << report.name;
    }
}

}  // namespace
}  // namespace joulemark::sensors
