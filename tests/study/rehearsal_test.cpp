// SPDX-License-Identifier: Apache-2.0
#include "study/rehearsal.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "study/design.h"

namespace joulemark::study {
namespace {

TEST(Rehearsal, KeepsTheDesignAndReplacesTheWork) {
    const Study study =
        rehearsal(parse_study("study: s\nrepeats: 3\nlauncher: slurm\ngpus_per_node: 4\ncooldown_c: 50\n"
                              "workload: {model: bert, samples: 1000, set: {lr: 1e-3}}\n"
                              "factors: {gpus: [2, 4], local_batch: [16]}\n",
                              "s.yaml"),
                  "A100", {{"noise_pct", 0}});
    EXPECT_EQ(study.name, "s-simulated");
    EXPECT_EQ(study.launcher, launch::Launcher::local);
    EXPECT_FALSE(study.cooldown_c);
    EXPECT_EQ(study.simulation->accelerator, "A100");
    EXPECT_EQ(study.simulation->gpus_per_node, 4);
    const auto runs = plan(study, {});
    ASSERT_EQ(runs.size(), 6U);
    EXPECT_EQ(runs[0].factors.find("workload")->text, "bert");
    EXPECT_EQ(runs[0].command[0], "joulemark-sim");
    EXPECT_EQ(std::ranges::count(runs[0].command, "1e-3"), 0)
        << "options of the model mean nothing to simulated work";
}

TEST(Rehearsal, NeedsNothingOfWhatTheRealStudyNeeds) {
    for (const char* text : {"study: s\nworkload: {model: simulated}\nfactors: {gpus: [1, 2]}\n",
                             "study: s\nworkload: {model: simulated}\nlauncher: mpirun\n",
                             "study: s\nworkload: {model: resnet50}\nfactors: {gpus: [1, 2]}\n"}) {
        EXPECT_THROW(parse_study(text, "s.yaml"), Error) << text;
        const Study study = rehearsal(parse_study(text, "s.yaml", true), "H100", nlohmann::json::object());
        EXPECT_EQ(plan(study, {})[0].command[0], "joulemark-sim") << text;
    }
}

TEST(Rehearsal, TakesTheExpectedTimeAndScaling) {
    const Study study = rehearsal(
        parse_study(
            "study: s\nlauncher: slurm\nworkload:\n  model: vgg16\n  samples: 5000\n  expect: "
            "{epoch_time_s: 100, gpus: 4, gpu_exponent: -0.5, source: assumption}\nfactors: {gpus: [4]}\n",
            "s.yaml"),
        "V100", nlohmann::json::object());
    const nlohmann::json& truth = study.series[0].workloads[0].truth;
    EXPECT_DOUBLE_EQ(truth["epoch_time_s"], 200);
    EXPECT_DOUBLE_EQ(truth["gpu_exponent"], 0.5);
    EXPECT_EQ(truth["samples"], 5000);
}

TEST(Rehearsal, TakesExpectedGpuHoursOfAGrowingDataSet) {
    // Perfect weak scaling: the epoch lasts as long however many GPUs there are.
    const Study study = rehearsal(
        parse_study("study: s\nlauncher: slurm\nworkload:\n  model: resnet50\n  epochs: 10\n"
                    "  samples_per_gpu: 500\n  expect: {gpu_hours: {1: 1, 8: 8}, source: assumption}\n"
                    "factors: {gpus: [1, 8]}\n",
                    "s.yaml"),
        "A100", nlohmann::json::object());
    const nlohmann::json& truth = study.series[0].workloads[0].truth;
    EXPECT_NEAR(truth["epoch_time_s"], 360, 1e-9);
    EXPECT_NEAR(truth["gpu_exponent"], 1, 1e-12);
    EXPECT_EQ(truth["samples"], 500);
}

}  // namespace
}  // namespace joulemark::study
