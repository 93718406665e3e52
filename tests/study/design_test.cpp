// SPDX-License-Identifier: Apache-2.0
#include "study/design.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::study {
namespace {

Study parse(const std::string& lines) {
    return parse_study("study: s\nworkload: {command: [work, \"{gpus}\"]}\n" + lines, "s.yaml");
}

std::vector<std::string> ids(const std::vector<PlannedRun>& runs) {
    std::vector<std::string> result;
    std::ranges::transform(runs, std::back_inserter(result), &PlannedRun::id);
    return result;
}

TEST(Design, OneFactorVariesEachAloneFromTheBaseline) {
    const Study study = parse(
        "order: as-listed\ndesign: one-factor\n"
        "factors: {gpus: [2, 4], power_cap_w: [100, 250]}\n"
        "baseline: {gpus: 4, power_cap_w: 250}\n");
    EXPECT_EQ(ids(plan(study, {})),
              (std::vector<std::string>{"work-g4-cap250-r1", "work-g2-cap250-r1", "work-g4-cap100-r1"}));
}

TEST(Design, FullFactorialCrossesAllLevels) {
    const Study study =
        parse("order: as-listed\nrepeats: 2\nfactors: {gpus: [2, 4], power_cap_w: [100, 250]}\n");
    EXPECT_EQ(ids(plan(study, {})),
              (std::vector<std::string>{"work-g2-cap100-r1", "work-g2-cap250-r1", "work-g4-cap100-r1",
                                        "work-g4-cap250-r1", "work-g2-cap100-r2", "work-g2-cap250-r2",
                                        "work-g4-cap100-r2", "work-g4-cap250-r2"}));
}

TEST(Design, RandomOrderShufflesEachPassAndNothingElse) {
    const std::string lines = "repeats: 3\nfactors: {gpus: [1, 2, 3, 4, 5, 6, 7, 8]}\nseed: ";
    const Study listed = parse("order: as-listed\n" + lines + "1\n");
    const Study random = parse("order: random\n" + lines + "1\n");
    const Study again = parse("order: random\n" + lines + "1\n");
    const Study other = parse("order: random\n" + lines + "2\n");
    const auto order = ids(plan(random, {}));
    EXPECT_EQ(order, ids(plan(again, {})));
    EXPECT_NE(order, ids(plan(other, {})));
    EXPECT_THAT(order, testing::UnorderedElementsAreArray(ids(plan(listed, {}))));
    std::set<std::vector<int>> passes;
    for (int repeat = 1; repeat <= 3; ++repeat) {
        std::vector<int> gpus;
        for (const PlannedRun& run : plan(random, {})) {
            if (run.repeat == repeat) {
                EXPECT_EQ((run.position - 1) / 8, repeat - 1) << "repeats are blocks";
                gpus.push_back(run.gpus);
            }
        }
        passes.insert(gpus);
    }
    EXPECT_EQ(passes.size(), 3U) << "each pass has an order of its own";
}

TEST(Design, IdentifiersDoNotDependOnWhatElseIsPlanned) {
    const Study small = parse("factors: {gpus: [2]}\n");
    const Study large = parse("repeats: 3\nfactors: {gpus: [1, 2, 4]}\n");
    EXPECT_THAT(ids(plan(large, {})), testing::Contains(ids(plan(small, {})).front()));
}

TEST(Design, IdentifiersAreDistinctFolderNames) {
    const Study study = parse_study(
        "study: s\n"
        "workload: {command: [work, \"{shape}\"]}\n"
        "factors: {shape: [a/b, a-b, ../x, \"a b\", 0.5, 5e-1x, " +
            std::string(300, 'l') + "]}\n",
        "s.yaml");
    const auto names = ids(plan(study, {}));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 7U);
    EXPECT_THAT(
        names,
        testing::Each(testing::AllOf(
            testing::Not(testing::HasSubstr("/")),
            testing::ResultOf([](const std::string& name) { return name.size(); }, testing::Lt(200U)))));
}

TEST(Design, TheBatchFollowsFromTheOtherOrTheRunIsSkipped) {
    const Study global = parse("order: as-listed\nfactors: {gpus: [2, 3], global_batch: [64]}\n");
    const auto runs = plan(global, {});
    EXPECT_EQ(runs[0].factors.number("local_batch"), 32);
    EXPECT_EQ(runs[0].skipped, "");
    EXPECT_EQ(runs[1].skipped, "global_batch 64 is not divisible by 3 GPUs");
    const Study local = parse("factors: {gpus: [4], local_batch: [16]}\n");
    EXPECT_EQ(plan(local, {}).front().factors.number("global_batch"), 64);
}

TEST(Design, WhatTheMachineDoesNotAllowIsSkippedWithItsReason) {
    const Study study = parse(
        "order: as-listed\ndesign: one-factor\n"
        "factors: {gpus: [1, 8], power_cap_w: [200, 90], sm_clock_mhz: [1000, 9000]}\n"
        "baseline: {gpus: 1, power_cap_w: 200, sm_clock_mhz: 1000}\n");
    const auto runs = plan(study, {.gpus = 4, .power_cap_w = Range{100, 300}, .sm_clock_max_mhz = 1980});
    ASSERT_EQ(runs.size(), 4U);
    EXPECT_EQ(runs[0].skipped, "");
    EXPECT_EQ(runs[1].skipped, "it needs 8 GPUs, and 4 may be used here");
    EXPECT_EQ(runs[2].skipped, "power_cap_w 90 is outside 100 to 300 W, the range of the GPU");
    EXPECT_EQ(runs[3].skipped, "sm_clock_mhz 9000 is above 1980 MHz, the highest of the GPU");
}

TEST(Design, SeedsVaryWithTheRepeatAloneOrNotAtAll) {
    const auto seeds = [](const std::string& how) {
        std::map<int, std::set<std::int64_t>> result;
        const Study study = parse("seed: 7\nrepeats: 2\nfactors: {gpus: [1, 2]}\ntrain_seed: " + how + "\n");
        for (const PlannedRun& run : plan(study, {})) {
            result[run.repeat].insert(run.seed);
        }
        return result;
    };
    using Seeds = std::map<int, std::set<std::int64_t>>;
    EXPECT_EQ(seeds("vary"), (Seeds{{1, {7}}, {2, {8}}}));
    EXPECT_EQ(seeds("fixed"), (Seeds{{1, {7}}, {2, {7}}}));
}

TEST(Design, CommandsAreFilledIn) {
    const Study study = parse_study(
        "study: s\nseed: 3\n"
        "workloads:\n"
        "  - {command: [a, \"{local_batch}/{gpus}\", \"{\\\"x\\\": 1}\", \"{seed}{run}\"], "
        "local_batch: 8}\n"
        "  - {model: resnet50, dataset: d, epochs: 2, samples_per_gpu: 2.5, global_batch: "
        "32, args: [--quiet]}\n"
        "factors: {gpus: [3, 2]}\nlauncher: mpirun\norder: as-listed\n",
        "s.yaml");
    const auto runs = plan(study, {});
    EXPECT_EQ(runs[0].command, (std::vector<std::string>{"a", "8/3", "{\"x\": 1}", "3a-g3-r1"}));
    EXPECT_EQ(
        fmt::format("{}", fmt::join(runs[3].command, " ")),
        "joulemark-train resnet50 --dataset d --epochs 2 --local-batch 16 --samples 5 --seed 3 --quiet");
}

TEST(Design, SimulatedRunsHaveNoiseOfTheirOwn) {
    const Study study = parse_study(
        "study: s\nrepeats: 3\nworkload: {model: simulated}\nfactors: {gpus: [1, 2]}\n"
        "simulation: {accelerator: V100, seed: 1}\n",
        "s.yaml");
    std::set<std::int64_t> seeds;
    for (const PlannedRun& run : plan(study, {})) {
        seeds.insert(simulation_seed(*study.simulation, run.id));
    }
    EXPECT_EQ(seeds.size(), 6U);
}

TEST(Design, AnExplosionIsRefused) {
    std::string levels = "1";
    for (int i = 2; i <= 400; ++i) {
        levels += ", " + std::to_string(i);
    }
    const Study study = parse("factors: {gpus: [" + levels + "], local_batch: [" + levels + "]}\n");
    EXPECT_THROW(plan(study, {}), Error);
    const Study repeats = parse("repeats: 1000000000\nfactors: {gpus: [1]}\n");
    EXPECT_THROW(plan(repeats, {}), Error);
}

}  // namespace
}  // namespace joulemark::study
