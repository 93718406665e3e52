// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace joulemark::launch {
namespace {

const std::vector<std::string> meter{"joulemark", "run", "-o", "out"};
const std::vector<std::string> train{"train", "--x"};

std::string line(Launcher launcher, const Job& job) {
    return fmt::format("{}", fmt::join(command_line(launcher, job, meter, train).command, " "));
}

TEST(Launcher, NamesAreThoseOfTheStudyFile) {
    for (const std::string_view name : launcher_names) {
        EXPECT_EQ(name_of(launcher_named(name).value()), name);
    }
    EXPECT_FALSE(launcher_named("pbs"));
}

TEST(Launcher, LocalIsTheCommandUnderTheMeter) {
    EXPECT_EQ(line(Launcher::local, {.ranks = 4}), "joulemark run -o out -- train --x");
}

TEST(Launcher, MpirunIsInsideTheMeterAndToldWhatItWouldRefuse) {
    EXPECT_EQ(line(Launcher::mpirun, {.ranks = 2, .slots = 2}),
              "joulemark run -o out -- mpirun -n 2 --bind-to none train --x");
    EXPECT_EQ(
        line(Launcher::mpirun, {.ranks = 3, .slots = 2, .root = true, .arguments = {"--bind-to", "none"}}),
        "joulemark run -o out -- mpirun -n 3 --allow-run-as-root --oversubscribe --bind-to none train --x");
}

TEST(Launcher, SlurmIsOutsideTheMeterSoThatEveryNodeHasOne) {
    EXPECT_EQ(line(Launcher::slurm, {.ranks = 8, .gpus_per_node = 4}),
              "srun -N 2 -n 8 --ntasks-per-node 4 --kill-on-bad-exit=1 joulemark run -o out -- train --x");
    EXPECT_EQ(line(Launcher::slurm, {.ranks = 2, .gpus_per_node = 4, .arguments = {"--gres=gpu:4"}}),
              "srun -N 1 -n 2 --ntasks-per-node 2 --kill-on-bad-exit=1 --gres=gpu:4 joulemark run -o out -- "
              "train --x");
}

TEST(Launcher, GivesTheFirstVisibleGpusExceptUnderSlurm) {
    const Job job{.ranks = 2, .gpus_per_node = 4, .visible_gpus = {"3", "GPU-ab", "1"}};
    using Environment = std::map<std::string, std::string>;
    EXPECT_EQ(command_line(Launcher::local, job, meter, train).environment,
              (Environment{{"CUDA_VISIBLE_DEVICES", "3,GPU-ab"}}));
    EXPECT_TRUE(command_line(Launcher::slurm, job, meter, train).environment.empty());
    EXPECT_TRUE(command_line(Launcher::local, {.ranks = 2}, meter, train).environment.empty());
}

TEST(Launcher, VisibleGpusFollowTheVariableAsCudaReadsIt) {
    using Entries = std::vector<std::string>;
    EXPECT_EQ(visible_gpus(nullptr, 3), (Entries{"0", "1", "2"}));
    EXPECT_EQ(visible_gpus("2,GPU-1f,0", 4), (Entries{"2", "GPU-1f", "0"}));
    EXPECT_EQ(visible_gpus("1,-1,0", 4), (Entries{"1"}));
    EXPECT_EQ(visible_gpus("", 4), Entries{});
}

TEST(Launcher, NodesAreRoundedUp) {
    EXPECT_EQ(nodes_needed(1, 4), 1);
    EXPECT_EQ(nodes_needed(4, 4), 1);
    EXPECT_EQ(nodes_needed(5, 4), 2);
}

}  // namespace
}  // namespace joulemark::launch
