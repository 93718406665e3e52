// SPDX-License-Identifier: Apache-2.0
//
// Sensors that few machines have: perf events, hwmon, ACPI meters, Cray's counters, network and disk.
#include <algorithm>

#include <gmock/gmock.h>
#include <sys/mman.h>

#include "sensors/fixture.h"
#include "sensors/ipmi.h"
#include "sensors/perf_rapl.h"

namespace joulemark::sensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PmCounters, whatever_nothing_nearer_tells) {
    const WritableTree tree("cray_ex");
    tree.write("sys/cray/pm_counters/accel1_energy", "7 J 1522781893016236 us");
    const Found found(discover_pm_counters, tree.tree());
    EXPECT_THAT(found.sources(), ElementsAre("node", "cpu", "dram", "gpu0", "gpu1"));
    EXPECT_EQ(found.source("gpu1").info().metrics.front(), Metric::gpu_energy_j);
    EXPECT_EQ(found.source("gpu1").info().scope, "gpu module");
    tree.write("sys/cray/pm_counters/accel1_energy", "27 J 1522781893116236 us");
    EXPECT_THAT(read(found.source("gpu1")), ElementsAre(0));
    tree.write("sys/cray/pm_counters/accel1_energy", "37 J 1522781893216236 us");
    EXPECT_THAT(read(found.source("gpu1")), ElementsAre(10));
    EXPECT_EQ(found.source("node").info().metrics.front(), Metric::node_energy_j);
    EXPECT_THAT(read(found.source("node")), ElementsAre(0));
    tree.write("sys/cray/pm_counters/energy", "598900 J 1522781893116236 us");
    EXPECT_THAT(read(found.source("node")), ElementsAre(220));
}

TEST(PmCounters, a_gpu_that_a_driver_knows_is_left_to_it) {
    const FixtureTree tree("cray_ex");
    Machine machine;
    machine.gpus_on_node = 1;  // and the job may use none of them
    const Options options{};
    const Environment environment{};
    Discovery discovery{options, tree, environment, machine};
    discover_pm_counters(discovery);
    const auto accel = std::ranges::find(machine.reports, "pm_counters accel0_energy", &SensorReport::name);
    ASSERT_NE(accel, machine.reports.end());
    EXPECT_EQ(accel->status, "available");
}

TEST(PmCounters, elsewhere_not_a_word) {
    EXPECT_THAT(Found(discover_pm_counters, FixtureTree("nothing")).machine.reports, IsEmpty());
}

TEST(AcpiPower, unnamed_meter_is_the_nodes_wall_power) {
    const Found found(discover_acpi_power, FixtureTree("acpi_node_meter"));
    EXPECT_THAT(found.sources(), ElementsAre("node"));
    EXPECT_THAT(read(found.source("node")), ElementsAre(431));
    EXPECT_EQ(found.source("node").info().native_period_s, 1.0);
    EXPECT_EQ(found.source("node").info().scope, "node wall");
}

TEST(AcpiPower, grace_gives_the_processor_and_refuses_rails_that_overlap) {
    const Found found(discover_acpi_power, FixtureTree("grace_hopper"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0"));
    EXPECT_THAT(read(found.source("cpu0")), ElementsAre(140));
    EXPECT_EQ(found.status("acpi Module Power Socket 0"), "available");
    EXPECT_EQ(found.status("acpi CPU Power Socket 0"), "available");
}

TEST(AcpiPower, processor_inside_a_counted_gpu_module_is_not_counted_again) {
    struct Module final : Source {
        using Source::Source;
        void read(std::span<double> values) noexcept override { values[0] = 0; }
    };
    Machine machine;
    SourceInfo info;
    info.scope = "gpu module";
    info.metrics = {Metric::gpu_energy_j};
    machine.sources.push_back(std::make_unique<Module>(info));
    const Options options{};
    const FixtureTree files("grace_hopper");
    const Environment environment{};
    Discovery discovery{options, files, environment, machine};
    discover_acpi_power(discovery);
    EXPECT_EQ(machine.sources.size(), 1U);
    EXPECT_TRUE(std::ranges::any_of(machine.reports, [](const SensorReport& report) {
        return report.reason == "contained in the GPU module's energy counter";
    }));
}

TEST(Hwmon, amd_sockets_stand_in_for_rapl_and_cores_are_not_added) {
    const WritableTree tree("amd_energy");
    const Found found(discover_hwmon, tree.tree());
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "cpu1"));
    EXPECT_THAT(read(found.source("cpu1")), ElementsAre(0));
    tree.write("sys/class/hwmon/hwmon0/energy4_input", "6500000");
    EXPECT_THAT(read(found.source("cpu1")), ElementsAre(2.5));
}

TEST(Hwmon, unknown_monitors_are_told_and_not_added) {
    const Found found(discover_hwmon, FixtureTree("acpi_node_meter"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_EQ(found.status("hwmon ina3221/VDD_IN"), "available");
}

/// Counts of perf events in the order of opening: package 0 and 1, DRAM 0 and 1.
std::vector<int> perf_files;
int fake_perf(std::uint32_t type, std::uint64_t, int) {
    if (type != 20) {
        return -1;
    }
    const int fd = memfd_create("perf", 0);
    const std::uint64_t count = std::uint64_t{1} << 32;
    EXPECT_EQ(pwrite(fd, &count, sizeof count, 0), static_cast<ssize_t>(sizeof count));
    lseek(fd, 0, SEEK_SET);
    perf_files.push_back(dup(fd));
    return fd;
}
int refused_perf(std::uint32_t, std::uint64_t, int) {
    errno = EACCES;
    return -1;
}

TEST(PerfRapl, gives_packages_and_dram_where_powercap_is_closed) {
    perf_files.clear();
    const Found found([](Discovery& discovery) { add_perf_rapl(discovery, fake_perf); },
                      FixtureTree("perf_power"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "cpu1", "dram0", "dram1"));
    EXPECT_THAT(read(found.source("cpu0")), ElementsAre(0));
    const std::uint64_t later = (std::uint64_t{1} << 32) + (std::uint64_t{1} << 33);  // 2 J at 2^-32 J
    ASSERT_EQ(pwrite(perf_files.at(0), &later, sizeof later, 0), static_cast<ssize_t>(sizeof later));
    lseek(perf_files.at(0), 0, SEEK_SET);  // a perf event has no position; the file that plays it has
    EXPECT_THAT(read(found.source("cpu0")), ElementsAre(2));
    std::ranges::for_each(perf_files, close);
}

TEST(PerfRapl, refusal_names_the_setting) {
    const Found found([](Discovery& discovery) { add_perf_rapl(discovery, refused_perf); },
                      FixtureTree("perf_power"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_THAT(found.report("perf cpu0")->reason, HasSubstr("Permission denied"));
    EXPECT_THAT(found.report("perf cpu0")->remedy, HasSubstr("perf_event_paranoid"));
}

TEST(Network, physical_interfaces_are_summed_and_infiniband_is_counted_apart) {
    const WritableTree tree("acpi_node_meter");
    const Found found(discover_network, tree.tree());
    ASSERT_EQ(found.machine.sources.size(), 2U);
    Source& ethernet = *found.machine.sources[0];
    Source& infiniband = *found.machine.sources[1];
    EXPECT_THAT(read(ethernet), ElementsAre(0, 0));
    tree.write("sys/class/net/eth0/statistics/rx_bytes", "1500");
    tree.write("sys/class/net/eth1/statistics/rx_bytes", "7");
    tree.write("sys/class/net/ib0/statistics/rx_bytes", "999999");
    tree.write("sys/class/net/lo/statistics/rx_bytes", "999999");
    tree.write("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "210");
    EXPECT_THAT(read(ethernet), ElementsAre(502, 0));
    EXPECT_THAT(read(infiniband), ElementsAre(0, 40));  // words of four bytes
}

TEST(Network, a_counter_that_was_reset_goes_on_and_one_that_fails_is_a_gap) {
    const WritableTree tree("acpi_node_meter");
    const Found found(discover_network, tree.tree());
    Source& ethernet = *found.machine.sources[0];
    tree.write("sys/class/net/eth0/statistics/rx_bytes", "0");
    EXPECT_THAT(read(ethernet), ElementsAre(0, 0));
    tree.write("sys/class/net/eth0/statistics/rx_bytes", "30");
    EXPECT_THAT(read(ethernet), ElementsAre(30, 0));
    tree.write("sys/class/net/eth0/statistics/rx_bytes", "");
    EXPECT_THAT(read(ethernet), ElementsAre(testing::IsNan(), 0));
    tree.write("sys/class/net/eth0/statistics/rx_bytes", "50");
    EXPECT_THAT(read(ethernet), ElementsAre(50, 0));
}

TEST(Disk, real_disks_are_counted_and_mappers_are_not) {
    const WritableTree tree("acpi_node_meter");
    const Found found(discover_disk, tree.tree());
    EXPECT_THAT(read(found.source("node")), ElementsAre(0));
    tree.write("sys/block/nvme0n1/stat",
               "     200        0     2050       10       50        0     4096       20");
    tree.write("sys/block/dm-0/stat",
               "     200        0     9050       10       50        0     4096       20");
    EXPECT_THAT(read(found.source("node")), ElementsAre(1024));
    EXPECT_THAT(found.report("disk node")->reason, HasSubstr("nvme0n1"));
}

TEST(Ipmi, power_is_the_present_one_of_the_four) {
    std::vector<std::uint8_t> answer{0, 0xdc, 0x39, 0x05, 1, 0, 0xff, 0xff, 2,   0,
                                     0, 0,    0,    0,    0, 0, 0,    0,    0x40};
    EXPECT_EQ(dcmi_power_w(answer), 1337);
    answer[18] = 0;  // not measuring
    EXPECT_EQ(dcmi_power_w(answer), std::nullopt);
    answer[18] = 0x40;
    answer[2] = answer[3] = 0;  // a controller that knows nothing says 0 W
    EXPECT_EQ(dcmi_power_w(answer), std::nullopt);
    EXPECT_EQ(dcmi_power_w(std::vector<std::uint8_t>{0xc1}), std::nullopt);  // command not supported
    EXPECT_EQ(dcmi_power_w({}), std::nullopt);
}

TEST(Ipmi, without_a_controller_says_what_to_load) {
    const Found found(discover_ipmi, FixtureTree("nothing"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_THAT(found.report("ipmi node")->remedy, HasSubstr("modprobe"));
}

TEST(Disk, none_is_reported) {
    EXPECT_EQ(Found(discover_disk, FixtureTree("nothing")).status("disk node"), "unavailable");
}

}  // namespace
}  // namespace joulemark::sensors
