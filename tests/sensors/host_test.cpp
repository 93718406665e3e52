// SPDX-License-Identifier: Apache-2.0
//
// /proc, control groups, and the estimate that stands on them.
#include <gmock/gmock.h>

#include "core/error.h"
#include "sensors/cpu_estimate.h"
#include "sensors/cpu_info.h"
#include "sensors/fixture.h"

namespace joulemark::sensors {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

constexpr double kib = 1024;

TEST(Proc, busy_is_the_share_since_the_reading_before) {
    const WritableTree tree("intel_2_sockets");
    const Found found(discover_proc, tree.tree());
    Source& busy = found.source("cpu");
    EXPECT_THAT(read(busy), ElementsAre(IsNan()));  // no tick since discovery: unknown, not 0
    tree.write("proc/stat", "cpu  1030 0 510 8050 505 0 0 5 100 0");  // 45 busy, 55 idle or waiting
    EXPECT_THAT(read(busy), ElementsAre(DoubleNear(45, 1e-9)));
    EXPECT_THAT(read(busy), ElementsAre(DoubleNear(45, 1e-9)));  // no tick since: what was read is no failure
    tree.write("proc/stat", "cpu  1130 0 510 8050 505 0 0 5 100 0");
    EXPECT_THAT(read(busy), ElementsAre(100));
    tree.write("proc/stat", "cpu  1030 0 510 8050 505 0 0 5 100 0");  // a processor less
    EXPECT_THAT(read(busy), ElementsAre(IsNan()));
}

TEST(Proc, unreadable_statistics_are_a_gap) {
    const WritableTree tree("intel_2_sockets");
    const Found found(discover_proc, tree.tree());
    tree.write("proc/stat", "cpu  1030 0 510");
    EXPECT_THAT(read(found.source("cpu")), ElementsAre(IsNan()));
    tree.write("proc/meminfo", "MemTotal: 5 kB");
    EXPECT_THAT(read(found.source("node")), ElementsAre(IsNan()));
}

TEST(Proc, memory_used_is_total_less_available) {
    const Found found(discover_proc, FixtureTree("intel_2_sockets"));
    EXPECT_THAT(read(found.source("node")), ElementsAre((263837480 - 231069480) * kib));
}

TEST(Proc, missing_files_are_reported) {
    const Found found(discover_proc, FixtureTree("nothing"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_EQ(found.status("proc cpu"), "unavailable");
    EXPECT_EQ(found.status("proc node"), "unavailable");
}

TEST(Cgroup, version_2_of_a_slurm_job_counts_memory_of_the_job_and_time_of_the_step) {
    const Found found(discover_cgroup, FixtureTree("intel_2_sockets"));
    EXPECT_THAT(read(found.source("node")), ElementsAre(8589934592.0));
    EXPECT_THAT(read(found.source("cpu")), ElementsAre(12.5));
}

TEST(Cgroup, version_1_of_a_slurm_job) {
    const Found found(discover_cgroup, FixtureTree("amd_epyc"));
    EXPECT_THAT(read(found.source("node")), ElementsAre(2147483648.0));
    EXPECT_THAT(read(found.source("cpu")), ElementsAre(3.5));
}

TEST(Cgroup, container_sees_its_own_group_at_the_top_and_leaves_time_to_the_kernel) {
    const Found found(discover_cgroup, FixtureTree("virtual_machine"));
    EXPECT_THAT(read(found.source("node")), ElementsAre(104857600.0));
    EXPECT_EQ(found.status("cgroup cpu"), "unavailable");
    EXPECT_THAT(found.report("cgroup cpu")->reason, HasSubstr("no control group of its own"));
}

TEST(Cgroup, none_is_reported) {
    const Found found(discover_cgroup, FixtureTree("nothing"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_EQ(found.status("cgroup node"), "unavailable");
}

TEST(CpuInfo, reads_vendor_sockets_and_hypervisor) {
    const CpuInfo cpu = read_cpu_info(FixtureTree("amd_epyc"));
    EXPECT_EQ(cpu.vendor, "AuthenticAMD");
    EXPECT_EQ(cpu.model, "AMD EPYC 7742 64-Core Processor");
    EXPECT_EQ(cpu.sockets, 2);
    EXPECT_EQ(cpu.cpus, 4);
    EXPECT_FALSE(cpu.virtual_machine);
    EXPECT_TRUE(read_cpu_info(FixtureTree("virtual_machine")).virtual_machine);
    EXPECT_EQ(read_cpu_info(FixtureTree("nothing")).sockets, 1);
}

TEST(CpuEstimate, never_without_being_asked) {
    const Found found(discover_cpu_estimate, FixtureTree("amd_epyc"));
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_THAT(found.machine.warnings, ElementsAre(HasSubstr("--estimate cpu")));
    EXPECT_EQ(found.status("cpu-estimate cpu"), "unavailable");
    EXPECT_THAT(found.machine.warnings.front(), Not(HasSubstr("JOULEMARK_CPU_RATED_W")));
    const Found guest(discover_cpu_estimate, FixtureTree("virtual_machine"));
    EXPECT_THAT(guest.machine.warnings, ElementsAre(HasSubstr("--estimate cpu adds a labelled estimate, with "
                                                              "JOULEMARK_CPU_RATED_W set")));
}

TEST(CpuEstimate, is_labelled_and_says_how) {
    const WritableTree tree("amd_epyc");
    const Found found(discover_cpu_estimate, tree.tree(),
                      {.root = "/", .estimate_cpu = true, .all_devices = false});
    EXPECT_EQ(found.source("cpu").info().method, "estimated");
    EXPECT_THAT(found.report("cpu-estimate cpu")->reason, HasSubstr("2 x 225 W"));
    tree.write("proc/stat", "cpu  1050 0 500 8050 500 0 0 0 0 0");  // half busy
    EXPECT_THAT(read(found.source("cpu")), ElementsAre(DoubleNear(450 * 0.75, 1e-9)));
}

TEST(CpuEstimate, takes_a_given_rated_power_and_refuses_nonsense) {
    const Options options{.root = "/", .estimate_cpu = true, .all_devices = false};
    const Found found(discover_cpu_estimate, FixtureTree("virtual_machine"), options,
                      {{"JOULEMARK_CPU_RATED_W", "100"}});
    EXPECT_THAT(found.sources(), ElementsAre("cpu"));
    EXPECT_THROW(
        Found(discover_cpu_estimate, FixtureTree("amd_epyc"), options, {{"JOULEMARK_CPU_RATED_W", "much"}}),
        Error);
}

TEST(CpuEstimate, does_not_bill_a_guest_for_its_host) {
    const Found found(discover_cpu_estimate, FixtureTree("virtual_machine"),
                      {.root = "/", .estimate_cpu = true, .all_devices = false});
    EXPECT_THAT(found.sources(), IsEmpty());
    EXPECT_THAT(found.report("cpu-estimate cpu")->remedy, HasSubstr("JOULEMARK_CPU_RATED_W"));
}

TEST(CpuEstimate, relative_power_follows_its_source) {
    EXPECT_DOUBLE_EQ(relative_power(0), 0.12);
    EXPECT_DOUBLE_EQ(relative_power(5), 0.22);
    EXPECT_DOUBLE_EQ(relative_power(50), 0.75);
    EXPECT_DOUBLE_EQ(relative_power(100), 1.02);
    EXPECT_EQ(rated_power_w("AMD EPYC 7763 64-Core Processor"), 280);
    EXPECT_EQ(rated_power_w("AMD EPYC"), std::nullopt);
}

TEST(Catalog, readable_rapl_is_never_ignored_for_an_estimate) {
    const Options options{.root = "/", .estimate_cpu = true, .all_devices = false};
    const Machine machine = discover_without_gpus(options, FixtureTree("intel_2_sockets"));
    EXPECT_THAT(machine.sources,
                testing::Each(testing::Pointee(testing::Property(
                    &Source::info, testing::Field(&SourceInfo::method, testing::Ne("estimated"))))));
}

TEST(Catalog, machine_without_sensors_has_reasons_and_no_source) {
    const Machine machine = discover_without_gpus({}, FixtureTree("nothing"));
    EXPECT_THAT(machine.sources, IsEmpty());
    EXPECT_THAT(machine.reports,
                testing::Each(testing::Field(&SensorReport::reason, testing::Not(IsEmpty()))));
    EXPECT_FALSE(machine.simulated);
}

}  // namespace
}  // namespace joulemark::sensors
