// SPDX-License-Identifier: Apache-2.0
#include "sensors/visible_devices.h"

#include <gmock/gmock.h>

namespace joulemark::sensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Four GPUs; Slurm counts them by device minor, which differs from the index here.
std::vector<GpuIdentity> four() {
    return {
        {0, "NVIDIA H200", "GPU-aaaa1111-0", "00000000:1b:00.0", 3U, {}},
        {1, "NVIDIA H200", "GPU-aaaa2222-1", "00000000:3c:00.0", 2U, {}},
        {2, "NVIDIA H200", "GPU-bbbb3333-2", "00000000:9b:00.0", 1U, {"MIG-cccc-1", "MIG-cccc-2"}},
        {3, "NVIDIA H200", "GPU-bbbb4444-3", "00000000:dd:00.0", 0U, {}},
    };
}

Visibility nvidia(const Environment& environment) {
    return visible_nvidia_gpus(environment, four());
}
Visibility cuda(const std::string& list) {
    return nvidia({{"CUDA_VISIBLE_DEVICES", list}});
}

TEST(VisibleDevices, without_any_variable_all) {
    const Visibility visible = nvidia({});
    EXPECT_THAT(visible.indices, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(visible.source, "all");
    EXPECT_TRUE(visible.contains(3));
    EXPECT_FALSE(visible.contains(4));
}

TEST(VisibleDevices, one_of_eight_allocated_is_one_billed) {
    std::vector<GpuIdentity> eight;
    for (int i = 0; i < 8; ++i) {
        eight.push_back({.index = i, .name = "V100", .uuid = "GPU-" + std::to_string(i)});
    }
    EXPECT_THAT(visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "5"}}, eight).indices, ElementsAre(5));
}

TEST(VisibleDevices, cuda_indices) {
    EXPECT_THAT(cuda("2,0").indices, ElementsAre(0, 2));
    EXPECT_THAT(cuda(" 1 , 3 ").indices, ElementsAre(1, 3));
    EXPECT_EQ(cuda("1").source, "CUDA_VISIBLE_DEVICES=1");
}

TEST(VisibleDevices, cuda_empty_means_none) {
    EXPECT_THAT(cuda("").indices, IsEmpty());
    EXPECT_THAT(cuda("").warnings, IsEmpty());
    EXPECT_THAT(cuda("NoDevFiles").indices, IsEmpty());
    EXPECT_THAT(cuda("-1").indices, IsEmpty());
    EXPECT_THAT(cuda("-1").warnings, IsEmpty());
}

TEST(VisibleDevices, cuda_invalid_entry_ends_the_list) {
    const Visibility visible = cuda("1,9,2");
    EXPECT_THAT(visible.indices, ElementsAre(1));
    EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("'9'")));
    EXPECT_THAT(cuda("0,-1,2").indices, ElementsAre(0));
    EXPECT_THAT(cuda("0,x").indices, ElementsAre(0));
    EXPECT_THAT(cuda("0,,2").indices, ElementsAre(0));
}

TEST(VisibleDevices, cuda_the_same_gpu_twice_counts_once) {
    EXPECT_THAT(cuda("1,1").indices, ElementsAre(1));
}

TEST(VisibleDevices, cuda_uuid_and_short_uuid) {
    EXPECT_THAT(cuda("GPU-bbbb3333-2").indices, ElementsAre(2));
    EXPECT_THAT(cuda("GPU-aaaa2,GPU-aaaa1").indices, ElementsAre(0, 1));
}

TEST(VisibleDevices, cuda_short_uuid_that_fits_two_ends_the_list) {
    EXPECT_THAT(cuda("GPU-aaaa1,GPU-bbbb,GPU-aaaa2").indices, ElementsAre(0));
}

TEST(VisibleDevices, cuda_mig_names_lead_to_their_board) {
    EXPECT_THAT(cuda("MIG-cccc-2").indices, ElementsAre(2));
    EXPECT_THAT(cuda("MIG-cccc-1,MIG-cccc-2").indices, ElementsAre(2));
    EXPECT_THAT(cuda("MIG-GPU-bbbb4444-3/1/0").indices, ElementsAre(3));
    EXPECT_THAT(cuda("MIG-dddd").indices, IsEmpty());
}

TEST(VisibleDevices, cuda_counts_in_pci_order_when_the_library_does_not) {
    std::vector<GpuIdentity> gpus = four();
    std::swap(gpus[0].pci_bus_id, gpus[3].pci_bus_id);
    EXPECT_THAT(visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "0"}}, gpus).indices, ElementsAre(3));
}

TEST(VisibleDevices, cuda_counts_in_library_order_when_a_pci_id_is_unknown) {
    std::vector<GpuIdentity> gpus = four();
    std::swap(gpus[0].pci_bus_id, gpus[3].pci_bus_id);
    gpus[1].pci_bus_id = "";
    EXPECT_THAT(visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "0"}}, gpus).indices, ElementsAre(0));
}

TEST(VisibleDevices, cuda_indices_of_mixed_gpus_state_the_assumption) {
    std::vector<GpuIdentity> gpus = four();
    gpus[1].name = "Tesla V100";
    EXPECT_THAT(visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "1"}}, gpus).warnings,
                ElementsAre(HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID")));
    EXPECT_THAT(
        visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, gpus)
            .warnings,
        IsEmpty());
    EXPECT_THAT(visible_nvidia_gpus({{"CUDA_VISIBLE_DEVICES", "GPU-aaaa1"}}, gpus).warnings, IsEmpty());
}

TEST(VisibleDevices, slurm_lists_count_by_device_minor) {
    const Visibility visible = nvidia({{"SLURM_JOB_GPUS", "0-1"}});
    EXPECT_THAT(visible.indices, ElementsAre(2, 3));
    EXPECT_EQ(visible.source, "SLURM_JOB_GPUS=0-1");
}

TEST(VisibleDevices, slurm_step_comes_before_job) {
    EXPECT_THAT(nvidia({{"SLURM_JOB_GPUS", "0,1,2,3"}, {"SLURM_STEP_GPUS", "3"}}).indices, ElementsAre(0));
}

TEST(VisibleDevices, ARangeOfSlurmsEndsWhereTheGpusDo) {
    const Visibility visible = nvidia({{"SLURM_JOB_GPUS", "0-2147483647"}});
    EXPECT_EQ(visible.indices.size(), 4U);
    EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("lists 2147483648 GPUs, 4 of which")));
}

TEST(VisibleDevices, slurm_gpus_behind_a_device_cgroup_are_told) {
    const Visibility visible = nvidia({{"SLURM_JOB_GPUS", "2,3,4,5"}});
    EXPECT_THAT(visible.indices, ElementsAre(0, 1));
    EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("lists 4 GPUs, 2 of which")));
}

TEST(VisibleDevices, cuda_decides_before_slurm_for_one_rank) {
    EXPECT_THAT(nvidia({{"SLURM_JOB_GPUS", "0-3"}, {"CUDA_VISIBLE_DEVICES", "1"}}).indices, ElementsAre(1));
}

TEST(VisibleDevices, of_several_ranks_the_job_decides_and_not_one_ranks_share) {
    const Environment rank{
        {"SLURM_JOB_GPUS", "0-3"}, {"CUDA_VISIBLE_DEVICES", "1"}, {"SLURM_NTASKS_PER_NODE", "4"}};
    EXPECT_THAT(nvidia(rank).indices, ElementsAre(0, 1, 2, 3));
}

TEST(VisibleDevices, several_ranks_without_a_list_of_the_job_are_told) {
    const Visibility visible = nvidia({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"CUDA_VISIBLE_DEVICES", "1"}});
    EXPECT_THAT(visible.indices, ElementsAre(1));
    EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("2 ranks")));
}

TEST(VisibleDevices, container_variable) {
    EXPECT_THAT(nvidia({{"NVIDIA_VISIBLE_DEVICES", "all"}}).indices, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(nvidia({{"NVIDIA_VISIBLE_DEVICES", "void"}}).indices, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(nvidia({{"NVIDIA_VISIBLE_DEVICES", "none"}}).indices, IsEmpty());
    EXPECT_THAT(nvidia({{"NVIDIA_VISIBLE_DEVICES", "GPU-aaaa1111-0"}}).indices, ElementsAre(0));
    // The host's indices: the runtime has hidden the others already.
    EXPECT_THAT(nvidia({{"NVIDIA_VISIBLE_DEVICES", "4,5,6,7"}}).indices, ElementsAre(0, 1, 2, 3));
}

TEST(VisibleDevices, amd_hip_counts_among_what_rocr_leaves) {
    const Visibility visible =
        visible_amd_gpus({{"ROCR_VISIBLE_DEVICES", "2,3"}, {"HIP_VISIBLE_DEVICES", "1"}}, four());
    EXPECT_THAT(visible.indices, ElementsAre(3));
    EXPECT_EQ(visible.source, "ROCR_VISIBLE_DEVICES=2,3 HIP_VISIBLE_DEVICES=1");
}

TEST(VisibleDevices, amd_honours_cuda_only_without_hip) {
    EXPECT_THAT(visible_amd_gpus({{"CUDA_VISIBLE_DEVICES", "1"}}, four()).indices, ElementsAre(1));
    EXPECT_THAT(
        visible_amd_gpus({{"CUDA_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "2"}}, four()).indices,
        ElementsAre(2));
    EXPECT_THAT(visible_amd_gpus({}, four()).indices, ElementsAre(0, 1, 2, 3));
}

TEST(VisibleDevices, nvidia_ignores_variables_of_amd) {
    EXPECT_THAT(nvidia({{"ROCR_VISIBLE_DEVICES", "0"}, {"HIP_VISIBLE_DEVICES", ""}}).indices,
                ElementsAre(0, 1, 2, 3));
}

TEST(VisibleDevices, ranks_on_node_reads_every_launcher) {
    EXPECT_EQ(ranks_on_node({}), 1);
    EXPECT_EQ(ranks_on_node({{"LOCAL_WORLD_SIZE", "8"}}), 8);
    EXPECT_EQ(ranks_on_node({{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}), 4);
    EXPECT_EQ(ranks_on_node({{"OMPI_COMM_WORLD_LOCAL_SIZE", "x"}}), 1);
}

}  // namespace
}  // namespace joulemark::sensors
