// SPDX-License-Identifier: Apache-2.0
#include "parallel/ranks.h"

#include <map>

#include <gmock/gmock.h>

#include "core/error.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;

Ranks from(const std::map<std::string, std::string>& variables) {
    return ranks_from([&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
}

TEST(Ranks, OneWithoutALauncher) {
    const Ranks ranks = from({});
    EXPECT_EQ(ranks.launcher, Launcher::none);
    EXPECT_EQ(ranks.size, 1);
}

TEST(Ranks, FromTorchrun) {
    const Ranks ranks = from({{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "29500"}});
    EXPECT_EQ(ranks.launcher, Launcher::torchrun);
    EXPECT_EQ(ranks.rank, 5);
    EXPECT_EQ(ranks.size, 8);
    EXPECT_EQ(ranks.local_rank, 1);
    EXPECT_EQ(ranks.local_size, 4);
    EXPECT_EQ(ranks.master_host, "node1");
    EXPECT_EQ(ranks.master_port, 29500);
}

std::string refusal(const std::map<std::string, std::string>& variables) {
    try {
        from(variables);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "";
}

TEST(Ranks, RefuseVariablesThatCannotBe) {
    const std::map<std::string, std::string> step = {
        {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
    auto with = [&](const char* name, const char* value) {
        auto variables = step;
        variables[name] = value;
        return refusal(variables);
    };
    EXPECT_THAT(with("SLURM_STEP_NODELIST", ""), testing::HasSubstr("SLURM_STEP_NODELIST names no host"));
    EXPECT_THAT(with("SLURM_STEP_NODELIST", "gpu[0-9223372036854775807]"),
                testing::HasSubstr("beyond 1000000 hosts"));
    EXPECT_THAT(with("MASTER_PORT", "99999"),
                testing::HasSubstr("MASTER_PORT=99999 is not a whole number from 0 to 65535"));
    EXPECT_EQ(with("MASTER_PORT", "65535"), "");
    EXPECT_EQ(with("SLURM_JOB_ID", "67108863"), "");  // the last that Slurm gives by default
}

TEST(Ranks, FromMpirunEvenInsideASlurmJob) {
    const Ranks ranks = from({{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "1"},
                              {"SLURM_STEP_ID", "0"}});
    EXPECT_EQ(ranks.launcher, Launcher::mpirun);
    EXPECT_EQ(ranks.rank, 3);
    EXPECT_EQ(ranks.local_size, 2);
}

TEST(Ranks, FromSrunWithTheFirstHostAsMaster) {
    const Ranks ranks = from({{"SLURM_STEP_ID", "2"},
                              {"SLURM_PROCID", "6"},
                              {"SLURM_STEP_NUM_TASKS", "7"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NODEID", "2"},
                              {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
                              {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                              {"SLURM_JOB_ID", "123456"}});
    EXPECT_EQ(ranks.launcher, Launcher::srun);
    EXPECT_EQ(ranks.rank, 6);
    EXPECT_EQ(ranks.size, 7);
    EXPECT_EQ(ranks.local_size, 1);
    EXPECT_EQ(ranks.master_host, "gpu07");
    EXPECT_GE(ranks.master_port, 20000);
    EXPECT_LT(ranks.master_port, 40000);
}

TEST(Ranks, ABatchScriptOfAMultiTaskJobIsOneRank) {
    EXPECT_EQ(from({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_JOB_ID", "1"}}).size, 1);
}

TEST(Ranks, RefusesContradictions) {
    EXPECT_THROW(from({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), Error);
    EXPECT_THROW(from({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), Error);
}

TEST(ExpandSlurmHosts, ReadsListsRangesAndSuffixes) {
    EXPECT_THAT(expand_slurm_hosts("gpu[01-03,07],login1"),
                ElementsAre("gpu01", "gpu02", "gpu03", "gpu07", "login1"));
    EXPECT_THAT(expand_slurm_hosts("n1-ib,n[9-11]-ib"), ElementsAre("n1-ib", "n9-ib", "n10-ib", "n11-ib"));
    EXPECT_THAT(expand_slurm_hosts("one"), ElementsAre("one"));
}

TEST(DefaultThreads, SharesTheNodeUnlessRanksAreBound) {
    EXPECT_EQ(default_threads(16, 16, 4), 4);
    EXPECT_EQ(default_threads(4, 16, 4), 4);  // bound by the launcher
    EXPECT_EQ(default_threads(8, 16, 4), 2);  // a job's half of the node, shared
    EXPECT_EQ(default_threads(2, 2, 4), 1);
}

}  // namespace
}  // namespace joulemark::train
