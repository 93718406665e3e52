// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_environment.h"

#include <map>

#include <gtest/gtest.h>

namespace joulemark::launch {
namespace {

using Table = std::map<std::string, std::string>;

RankEnvironment of(const Table& table) {
    return rank_environment([&](const char* name) -> const char* {
        const auto found = table.find(name);
        return found == table.end() ? nullptr : found->second.c_str();
    });
}

TEST(RankEnvironment, OutsideAnyLauncherThereIsOneRank) {
    const RankEnvironment none = of({});
    EXPECT_EQ(none.rank, 0);
    EXPECT_EQ(none.world_size, 1);
    EXPECT_EQ(none.launcher, "none");
    EXPECT_EQ(none.job_id, "");
    EXPECT_FALSE(none.node.empty());
}

TEST(RankEnvironment, ReadsEachLauncher) {
    struct Case {
        std::string launcher;
        Table table;
    };
    for (const auto& [launcher, table] : {
             Case{"torchrun",
                  {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "job"}}},
             Case{"openmpi",
                  {{"OMPI_COMM_WORLD_RANK", "5"},
                   {"OMPI_COMM_WORLD_SIZE", "8"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                   {"PMIX_NAMESPACE", "job"}}},
             Case{"pmi",
                  {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"PMI_JOBID", "job"}}},
             Case{"slurm",
                  {{"SLURM_PROCID", "5"},
                   {"SLURM_STEP_NUM_TASKS", "8"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_JOB_ID", "job"}}},
         }) {
        const RankEnvironment found = of(table);
        EXPECT_EQ(found.launcher, launcher);
        EXPECT_EQ(found.rank, 5) << launcher;
        EXPECT_EQ(found.world_size, 8) << launcher;
        EXPECT_EQ(found.local_rank, 1) << launcher;
        EXPECT_EQ(found.job_id, "job") << launcher;
    }
}

TEST(RankEnvironment, TheLauncherNearestToTheProcessWins) {
    const RankEnvironment found = of({{"SLURM_PROCID", "0"},
                                      {"SLURM_STEP_NUM_TASKS", "1"},
                                      {"SLURM_LOCALID", "0"},
                                      {"SLURM_JOB_ID", "77"},
                                      {"SLURM_STEP_ID", "3"},
                                      {"OMPI_COMM_WORLD_RANK", "1"},
                                      {"OMPI_COMM_WORLD_SIZE", "2"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    EXPECT_EQ(found.launcher, "openmpi");
    EXPECT_EQ(found.rank, 1);
    EXPECT_EQ(found.local_world_size, 2);
    EXPECT_EQ(found.job_id, "77");
    EXPECT_EQ(found.step, "3");
}

TEST(RankEnvironment, ABatchScriptIsNoRank) {
    const RankEnvironment found =
        of({{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "77"}});
    EXPECT_EQ(found.launcher, "none");
    EXPECT_EQ(found.world_size, 1);
    EXPECT_EQ(found.job_id, "77");
}

TEST(RankEnvironment, VariablesThatContradictEachOtherDoNotCount) {
    EXPECT_EQ(of({{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}}).launcher, "none");
    EXPECT_EQ(of({{"RANK", "x"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}}).launcher, "none");
    EXPECT_EQ(of({{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}}).launcher, "none");
}

TEST(RankEnvironment, TheNodeIsSlurmsNameForIt) {
    EXPECT_EQ(of({{"SLURMD_NODENAME", "n7"}}).node, "n7");
    EXPECT_EQ(of({{"SLURMD_NODENAME", "n7"}}).warning, "");
}

TEST(RankEnvironment, ANodeNameIsNoPath) {
    const std::string own = of({}).node;
    for (const std::string name : {"../../evil", "/etc", "..", ".hidden", "a b", "a\nb"}) {
        const RankEnvironment found = of({{"SLURMD_NODENAME", name}});
        EXPECT_EQ(found.node, own) << name;
        EXPECT_NE(found.warning.find(name), std::string::npos) << name;
    }
    EXPECT_TRUE(is_host_name("gpu-node_07.cluster.example"));
    EXPECT_FALSE(is_host_name(std::string(300, 'n')));
    EXPECT_FALSE(is_host_name(""));
}

}  // namespace
}  // namespace joulemark::launch
