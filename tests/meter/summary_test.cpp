// SPDX-License-Identifier: Apache-2.0
#include "meter/summary.h"

#include <gmock/gmock.h>

#include "fakes.h"

namespace joulemark::meter {
namespace {

using testing::HasSubstr;
using testing::Not;

SummaryInput input() {
    SummaryInput input;
    input.run = "train";
    input.folder = "results/runs/train/host";
    input.command_s = 10;
    return input;
}

Totals::Entry entry(std::string device, std::string component, std::string method,
                    std::optional<double> counter, std::optional<double> integrated) {
    Totals::Entry entry{.device = std::move(device), .component = std::move(component)};
    entry.method = std::move(method);
    entry.counter_j = counter;
    entry.integrated_j = integrated;
    entry.covered_s = 10;
    return entry;
}

TEST(Summary, TellsWhatTheTotalContainsAndLacks) {
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "counter", 2000, 1900), entry("gpu1", "gpu", "counter", 2000, 1900),
                   entry("cpu0", "cpu", "counter", 500, {})};
    in.epochs = {.count = 2, .seconds = 8};
    sensors::Machine machine;
    sensors::SensorReport closed{};
    closed.quantity = "energy";
    closed.scope = "dram";
    closed.status = "unavailable";
    closed.reason = "no DRAM domain";
    machine.reports = {closed};
    const std::string text = summary(in, machine);
    EXPECT_THAT(text, HasSubstr("train: 10.00 s, exit status 0"));
    EXPECT_THAT(text, HasSubstr("GPU      1.111 Wh   counter (integrated power 1.056 Wh, -5.0 %), mean 200.0 "
                                "W per GPU (2 GPUs)"));
    EXPECT_THAT(text, HasSubstr("CPU      500.0 J    counter, mean 50.00 W"));
    EXPECT_THAT(text, HasSubstr("total    1.250 Wh   GPU + CPU"));
    EXPECT_THAT(text, HasSubstr("lacks    DRAM (no DRAM domain)"));
    EXPECT_THAT(text, HasSubstr("epochs   2, mean 4.000 s"));
    EXPECT_THAT(text, Not(HasSubstr("simulated")));
}

TEST(Summary, WithoutSensorsThereIsNoEnergyAndAReason) {
    sensors::Machine machine;
    sensors::SensorReport missing{};
    missing.quantity = "power";
    missing.scope = "gpu board";
    missing.status = "unavailable";
    missing.reason = "no NVIDIA driver";
    machine.reports = {missing};
    const std::string text = summary(input(), machine);
    EXPECT_THAT(text, HasSubstr("lacks    GPU (no NVIDIA driver), CPU, DRAM"));
    EXPECT_THAT(text, Not(HasSubstr(" J")));
}

TEST(Summary, SaysWhatAnEstimateWants) {
    sensors::Machine machine;
    sensors::SensorReport rapl{};
    rapl.name = "rapl";
    rapl.quantity = "energy";
    rapl.scope = "cpu package";
    rapl.status = "unavailable";
    rapl.reason = "no RAPL here";
    sensors::SensorReport estimate = rapl;
    estimate.name = "cpu-estimate cpu";
    estimate.quantity = "power";
    estimate.reason = "the rated power is not known";
    estimate.remedy = "set JOULEMARK_CPU_RATED_W";
    machine.reports = {rapl, estimate};
    EXPECT_THAT(summary(input(), machine),
                HasSubstr("CPU (no RAPL here; the rated power is not known: set JOULEMARK_CPU_RATED_W)"));
}

TEST(Summary, SaysSimulatedAndEstimated) {
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "simulated", 2000, {}), entry("cpu", "cpu", "estimated", {}, 500)};
    sensors::Machine machine;
    machine.simulated = true;
    const std::string text = summary(in, machine);
    EXPECT_THAT(text, HasSubstr("simulated, counter"));
    EXPECT_THAT(text, HasSubstr("estimated, integrated power"));
}

TEST(Summary, TellsWhatACounterWentThrough) {
    class Eventful final : public sensors::Source {
      public:
        using Source::Source;
        void read(std::span<double>) noexcept override {}
        sensors::CounterEvents events() const override { return {.wraps = 1, .resets = 1, .frozen = 2}; }
    };
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "sampled", 55, 3000), entry("cpu0", "cpu", "counter", 0, {})};
    in.energies[0].doubt = "was reset";
    in.energies[1].doubt = "did not move";
    sensors::Machine machine;
    machine.sources.push_back(
        std::make_unique<Eventful>(source_info("nvml.energy", "gpu0", {sensors::Metric::gpu_energy_j})));
    const std::string text = summary(in, machine);
    EXPECT_THAT(text, HasSubstr("GPU      3000 J     integrated power (the counter of gpu0 was reset), mean"));
    EXPECT_THAT(text, HasSubstr("lacks    CPU (the counter of cpu0 did not move), DRAM"));
    EXPECT_THAT(text, HasSubstr("warning  nvml.energy of gpu0: the energy counter was reset, stood still while "
                                "power was drawn (2 times)"));
}

TEST(Summary, ADeviceThatWasLostIsNoWhole) {
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "counter", 2000, 2000), entry("gpu1", "gpu", "counter", 500, 500)};
    in.energies[0].epochs_j = 2000;
    in.energies[1].covered_s = 2.5;
    in.epochs = {.count = 1, .seconds = 10};
    in.warnings = coverage_warnings(in.energies, in.command_s);
    ASSERT_EQ(in.warnings.size(), 1U);
    const std::string text = summary(in, {});
    EXPECT_THAT(text, HasSubstr("GPU      at least 2500 J"));
    EXPECT_THAT(text, HasSubstr("mean 200.0 W per GPU while read (2 GPUs)"));
    EXPECT_THAT(text, HasSubstr("epochs   1, mean 10.00 s\n")) << "no energy of an epoch";
    EXPECT_THAT(text, HasSubstr("warning  gpu1 was read for 2.500 s of 10.00 s only"));
}

TEST(Summary, AGpuWithoutEnergyIsNamedAndLeavesNoTotal) {
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "counter", 2000, 2000), entry("cpu0", "cpu", "counter", 500, {})};
    in.energies[0].epochs_j = 2000;
    in.energies[1].epochs_j = 500;
    in.epochs = {.count = 1, .seconds = 10};
    sensors::Machine machine;
    machine.devices = {device("gpu0", "gpu"), device("gpu1", "gpu"), device("cpu0", "cpu")};
    const std::string text = summary(in, machine);
    EXPECT_THAT(text, HasSubstr("lacks    GPU (gpu1 told none), DRAM"));
    EXPECT_THAT(text, Not(HasSubstr("total")));
    EXPECT_THAT(text, HasSubstr("epochs   1, mean 10.00 s\n")) << "no energy of an epoch";
}

TEST(Summary, AModulesCounterContainsCpuAndMemory) {
    auto in = input();
    in.energies = {entry("gpu0", "gpu", "counter", 2000, 2000), entry("cpu0", "cpu", "counter", 500, {})};
    sensors::Machine machine;
    auto module = source_info("nvml.energy", "gpu0", {sensors::Metric::gpu_energy_j});
    EXPECT_THAT(summary(in, machine), HasSubstr("total    2500 J     GPU + CPU"));
    module.scope = "gpu module";
    machine.sources.push_back(std::make_unique<FakeSource>(std::move(module), [](std::span<double>) {}));
    EXPECT_THAT(summary(in, machine), Not(HasSubstr("total")));
}

TEST(Summary, NamesTheSignalAndWhatWasLost) {
    auto in = input();
    in.end.signal = 9;
    in.counts = {.rows = 10, .lost = 3};
    const std::string text = summary(in, {});
    EXPECT_THAT(text, HasSubstr("ended by signal 9"));
    EXPECT_THAT(text, HasSubstr("3 of 10 rows lost"));
}

}  // namespace
}  // namespace joulemark::meter
