// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sensors/fixture.h"

namespace joulemark::sensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* package_0 = "sys/class/powercap/intel-rapl:0/energy_uj";

TEST(Rapl, two_sockets_with_dram_give_packages_and_dram) {
    const Found found(discover_rapl, FixtureTree("intel_2_sockets"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "dram0", "cpu1", "dram1"));
    EXPECT_EQ(found.machine.devices[0].component, "cpu");
    EXPECT_EQ(found.machine.devices[0].name, "Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz");
    EXPECT_EQ(found.machine.devices[1].component, "dram");
    EXPECT_EQ(found.machine.devices[3].index, 1);
    EXPECT_EQ(found.source("dram1").info().scope, "dram");
    EXPECT_EQ(found.source("cpu1").info().method, "counter");
    EXPECT_THAT(found.machine.warnings, IsEmpty());
}

TEST(Rapl, each_joule_once_where_psys_package_core_and_dram_exist) {
    const Found found(discover_rapl, FixtureTree("intel_psys"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "dram0"));
    EXPECT_EQ(found.status("rapl core of package-0"), "available");
    EXPECT_THAT(found.report("rapl core of package-0")->reason, HasSubstr("contained in package-0"));
    EXPECT_EQ(found.status("rapl uncore of package-0"), "available");
    EXPECT_THAT(found.report("rapl psys")->reason, HasSubstr("contains the packages"));
}

TEST(Rapl, memory_mapped_mirror_is_not_counted_twice) {
    const Found found(discover_rapl, FixtureTree("intel_mmio"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "dram0"));
    EXPECT_THAT(found.source("cpu0").info().origin, HasSubstr("intel-rapl:0/"));
    EXPECT_EQ(found.status("rapl package-0 (mmio)"), "available");
}

TEST(Rapl, memory_mapped_mirror_stands_in_for_a_closed_zone) {
    const Found found(discover_rapl, FixtureTree("intel_mmio", {package_0}));
    EXPECT_THAT(found.source("cpu0").info().origin, HasSubstr("intel-rapl-mmio:0/"));
}

TEST(Rapl, root_only_file_is_named_with_its_remedy) {
    const FixtureTree files("intel_2_sockets", {package_0});
    const Found found(discover_rapl, files);
    const SensorReport& report = *found.report("rapl package-0");
    EXPECT_EQ(report.status, "unavailable");
    EXPECT_THAT(report.reason, HasSubstr(files.shown(package_0)));
    EXPECT_THAT(report.reason, HasSubstr("Permission denied"));
    EXPECT_THAT(report.remedy, HasSubstr("sudo chmod o+r " + files.shown(package_0)));
    EXPECT_THAT(found.machine.warnings, ElementsAre(HasSubstr("package-0 is not measured")));
}

TEST(Rapl, one_unreadable_zone_costs_only_itself) {
    const Found found(discover_rapl, FixtureTree("one_zone_broken"));
    EXPECT_THAT(found.sources(), ElementsAre("dram0", "cpu1", "dram1"));
    EXPECT_THAT(found.report("rapl package-0")->reason, HasSubstr("No such file"));
}

TEST(Rapl, amd_says_that_it_has_no_dram_domain) {
    const Found found(discover_rapl, FixtureTree("amd_epyc"));
    EXPECT_THAT(found.sources(), ElementsAre("cpu0", "cpu1"));
    EXPECT_THAT(found.report("rapl dram")->reason, HasSubstr("AMD"));
}

TEST(Rapl, virtual_machine_is_the_reason) {
    const Found found(discover_rapl, FixtureTree("virtual_machine"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_EQ(found.status("rapl"), "unavailable");
    EXPECT_THAT(found.report("rapl")->reason, HasSubstr("virtual machine"));
}

TEST(Rapl, reads_joules_since_the_start_and_passes_over_a_wrap) {
    const WritableTree tree("intel_2_sockets");
    tree.write(package_0, "262143328000");
    const Found found(discover_rapl, tree.tree());
    Source& source = found.source("cpu0");
    EXPECT_THAT(read(source), ElementsAre(0));
    tree.write(package_0, "262143328850");
    EXPECT_THAT(read(source), ElementsAre(850e-6));
    tree.write(package_0, "149");
    EXPECT_THAT(read(source), ElementsAre(1000e-6));
    EXPECT_EQ(source.events().wraps, 1U);
}

TEST(Rapl, failed_read_is_a_gap_and_the_next_one_right) {
    const WritableTree tree("intel_2_sockets");
    tree.write(package_0, "5000000");
    const Found found(discover_rapl, tree.tree());
    Source& source = found.source("cpu0");
    read(source);
    tree.write(package_0, "");
    EXPECT_THAT(read(source), ElementsAre(testing::IsNan()));
    tree.write(package_0, "7000000");
    EXPECT_THAT(read(source), ElementsAre(2));
    EXPECT_EQ(source.events().failed_reads, 1U);
}

TEST(Rapl, simulated_gpus_leave_real_joules_out) {
    Machine machine;
    machine.simulated = true;
    const Options options;
    const FixtureTree files("intel_2_sockets");
    const Environment environment;
    Discovery discovery{options, files, environment, machine};
    discover_rapl(discovery);
    EXPECT_THAT(machine.sources, IsEmpty());
    EXPECT_THAT(machine.reports.at(0).reason, HasSubstr("simulated"));
}

}  // namespace
}  // namespace joulemark::sensors
