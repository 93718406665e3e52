// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "study/study.h"

namespace joulemark::study {
namespace {

/// A study around the given lines; they start on line 6.
std::string with(const std::string& lines) {
    return "study: s\n"
           "workload:\n"
           "  model: resnet50\n"
           "  epochs: 3\n"
           "launcher: mpirun\n" +
           lines;
}

std::string complaint(const std::string& text) {
    try {
        parse_study(text, "s.yaml");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "accepted";
}

TEST(StudyFile, ReadsEveryKey) {
    const Study study = parse_study(R"(
study: all
repeats: 4
train_seed: fixed
order: as-listed
seed: 9
workloads:
  - {name: a, command: [train.py, "--batch={local_batch}", "{shape}"], samples: 100}
  - {model: simulated, epochs: 5, warmup_epochs: 2, samples_per_gpu: 2.5}
factors: {gpus: [1, 2], local_batch: [8], shape: [x, y]}
design: one-factor
baseline: {gpus: 2, shape: y}
launcher: local
launcher_args: [--x]
gpus_per_node: 4
rate_hz: 0.5
idle_s: 0
cooldown_c: 50
timeout_s: 60
env: {OMP_NUM_THREADS: 1}
simulation: {accelerator: V100, gpus_per_node: 2, seed: 7, truth: {a: 0.5, b: [1, true, "1"]}}
expect: {epoch_time_s: 10, gpus: 2, gpu_exponent: -0.5, source: somewhere}
)",
                                    "all.yaml");
    EXPECT_EQ(study.name, "all");
    EXPECT_FALSE(study.vary_train_seed);
    EXPECT_FALSE(study.random_order);
    EXPECT_EQ(study.seed, 9);
    EXPECT_EQ(study.launcher_arguments, std::vector<std::string>{"--x"});
    EXPECT_EQ(study.gpus_per_node, 4);
    EXPECT_EQ(study.rate_hz, 0.5);
    EXPECT_EQ(study.idle_s, 0);
    EXPECT_EQ(study.environment.at("OMP_NUM_THREADS"), "1");
    EXPECT_EQ(study.simulation->truth, nlohmann::json::parse(R"({"a": 0.5, "b": [1, true, "1"]})"));
    ASSERT_EQ(study.series.size(), 1U);
    const Series& series = study.series.front();
    EXPECT_EQ(series.repeats, 4);
    EXPECT_EQ(series.design, Design::one_factor);
    EXPECT_EQ(series.baseline.number("gpus"), 2);
    EXPECT_EQ(series.baseline.number("local_batch"), 8) << "a single level is its own baseline";
    EXPECT_EQ(series.expect->gpu_exponent, -0.5);
    ASSERT_EQ(series.workloads.size(), 2U);
    EXPECT_EQ(series.workloads[0].samples, 100);
    EXPECT_EQ(series.workloads[1].name, "simulated");
    EXPECT_EQ(series.workloads[1].samples_per_gpu, 2.5);
}

TEST(StudyFile, ASeriesTakesFromTheStudyWhatItDoesNotSay) {
    const Study study =
        parse_study(with("repeats: 2\n"
                         "factors: {gpus: [1, 2]}\n"
                         "series:\n"
                         "  - {name: a}\n"
                         "  - {name: b, repeats: 3, factors: {gpus: [4], global_batch: [64]}}\n"),
                    "s.yaml");
    ASSERT_EQ(study.series.size(), 2U);
    EXPECT_EQ(study.series[0].repeats, 2);
    EXPECT_EQ(study.series[0].factors.size(), 1U);
    EXPECT_EQ(study.series[1].repeats, 3);
    EXPECT_EQ(study.series[1].factors.size(), 2U);
    EXPECT_EQ(study.series[1].workloads.front().epochs, 3);
}

TEST(StudyFile, OptionsOfTheWorkloadBecomeWords) {
    const Study study = parse_study(
        "study: s\n"
        "workload: {model: resnet50, set: {image_size: 64, channels_last: true, sync_bn: "
        "false}, args: [--quiet]}\n",
        "s.yaml");
    EXPECT_EQ(study.series[0].workloads[0].arguments,
              (std::vector<std::string>{"--image-size", "64", "--channels-last", "--quiet"}));
}

TEST(StudyFile, DataSetsAreFoundThroughTheEnvironment) {
    const auto dataset = [](const std::string& text) {
        return parse_study("study: s\nworkload: {model: resnet50, dataset: \"" + text + "\"}\n", "s.yaml")
            .series[0]
            .workloads[0]
            .dataset;
    };
    setenv("JOULEMARK_TEST_DATA", "/data", 1);
    EXPECT_EQ(dataset("${JOULEMARK_TEST_DATA}/x"), "/data/x");
    EXPECT_EQ(dataset("${JOULEMARK_TEST_DATA:-other}"), "/data");
    unsetenv("JOULEMARK_TEST_DATA");
    EXPECT_EQ(dataset("${JOULEMARK_TEST_DATA:-other}/x"), "other/x");
    EXPECT_THROW(dataset("${JOULEMARK_TEST_DATA}"), Error);
    EXPECT_THROW(dataset("${JOULEMARK_TEST_DATA"), Error);
}

struct Mistake {
    std::string text, complaint;
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
    *out << mistake.complaint;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithLineAndColumn) {
    EXPECT_EQ(complaint(GetParam().text), GetParam().complaint);
}

INSTANTIATE_TEST_SUITE_P(
    StudyFile, Mistakes,
    testing::Values(
        Mistake{with("repeat: 3\n"), "s.yaml:6:1: 'repeat' is no key of the study; did you mean 'repeats'?"},
        Mistake{with("repeats: 3\nseed: 1\nrepeats: 4\n"),
                "s.yaml:8:1: 'repeats' stands twice in the study: it is already on line 6"},
        Mistake{with("factors: {gpus: [1], gpus: [2]}\n"),
                "s.yaml:6:22: 'gpus' stands twice in 'factors': it is already on line 6"},
        Mistake{with("repeats: many\n"),
                "s.yaml:6:10: 'repeats' must be a whole number from 1 to 1000000000"},
        Mistake{with("repeats: 2.5\n"), "s.yaml:6:10: 'repeats' must be a whole number from 1 to 1000000000"},
        Mistake{with("repeats: [1]\n"), "s.yaml:6:10: 'repeats' must be a whole number from 1 to 1000000000"},
        Mistake{with("rate_hz: 0\n"), "s.yaml:6:10: 'rate_hz' must be a number above 0"},
        Mistake{with("order: sorted\n"),
                "s.yaml:6:8: 'order' must be one of random, as-listed, not 'sorted'"},
        Mistake{with("factors: {power_cap: [200]}\n"),
                "s.yaml:6:11: 'power_cap' is no known factor, and no command or argument uses it as "
                "{power_cap}; did "
                "you mean 'power_cap_w'?"},
        Mistake{with("factors: {gpus: []}\n"),
                "s.yaml:6:17: 'gpus' must be a list of levels, such as [1, 2]"},
        Mistake{with("factors: {gpus: 2}\n"), "s.yaml:6:17: 'gpus' must be a list of levels, such as [1, 2]"},
        Mistake{with("factors: {gpus: [two]}\n"),
                "s.yaml:6:18: a level of 'gpus' must be a positive number, not 'two'"},
        Mistake{with("factors: {gpus: [1, 1.5]}\n"),
                "s.yaml:6:21: a level of 'gpus' must be a whole number, not '1.5'"},
        Mistake{with("factors: {gpus: [1, 2, 1.0]}\n"), "s.yaml:6:24: level 1 stands twice in 'gpus'"},
        Mistake{with("factors: {gpus: [1, 2]}\ndesign: one-factor\nbaseline: {gpus: 4}\n"),
                "s.yaml:8:18: the baseline's 4 is not among the levels of 'gpus'"},
        Mistake{with("factors: {gpus: [1, 2]}\nbaseline: {gpu: 1}\n"),
                "s.yaml:7:12: 'gpu' is no factor of this study; did you mean 'gpus'?"},
        Mistake{with("factors: {gpus: [1, 2]}\ndesign: one-factor\n"),
                "s.yaml:1:1: design one-factor needs a 'baseline' with a level of 'gpus'"},
        Mistake{with("factors: {local_batch: [1], global_batch: [2]}\n"),
                "s.yaml:6:43: 'local_batch' and 'global_batch' exclude each other: one follows from the "
                "other and "
                "'gpus'"},
        Mistake{with("expect: {epoch_time_s: 3}\n"),
                "s.yaml:6:9: 'expect' needs a 'source': say where its numbers "
                "are from, or that they are assumed"},
        Mistake{with("series: [{repeats: 2}]\n"), "s.yaml:6:10: each series needs a 'name'"},
        Mistake{with("series: [{name: a}, {name: a}]\n"), "s.yaml:6:28: two series have the name 'a'"},
        Mistake{with("env: [a]\n"), "s.yaml:6:6: 'env' must be a mapping of keys to values"},
        Mistake{"study: s\n", "s.yaml:1:1: the study needs a 'workload' or a list of 'workloads'"},
        Mistake{"workload: {model: resnet50}\n", "s.yaml:1:1: the study needs a name: 'study: NAME'"},
        Mistake{"- a\n", "s.yaml:1:1: the study must be a mapping of keys to values"},
        Mistake{"study: s\nworkload: {model: resnet51}\n",
                "s.yaml:2:19: there is no model 'resnet51'; did you mean 'resnet50'?"},
        Mistake{"study: s\nworkload: {epochs: 1}\n",
                "s.yaml:2:11: a workload has either a 'model' or a 'command'"},
        Mistake{"study: s\nworkload: {model: resnet50, epochs: 2, warmup_epochs: 2}\n",
                "s.yaml:2:55: 'warmup_epochs' (2) must be less than 'epochs' (2), which counts all epochs of "
                "a run"},
        Mistake{"study: s\nworkload: {command: [a, \"{gpu}\"]}\n",
                "s.yaml:2:11: {gpu} in '{gpu}' of workload a has no value; did you mean 'gpus'?"},
        Mistake{"study: s\nworkload: {command: [a, \"{local_batch}\"]}\n",
                "s.yaml:2:11: {local_batch} in '{local_batch}' of workload a has no value; known are gpus, "
                "epochs, "
                "warmup_epochs, seed, repeat, run, series, workload"},
        Mistake{"study: s\nworkload: {model: resnet50}\nfactors: {gpus: [1, 2]}\nlauncher: local\n",
                "s.yaml:4:11: launcher local starts one process, but model resnet50 runs one per GPU: use "
                "'launcher: "
                "mpirun' or slurm, or gpus: [1]"},
        Mistake{"study: s\nworkload: {model: simulated}\n",
                "s.yaml:2:11: model 'simulated' needs a 'simulation' block"},
        Mistake{
            "study: s\nworkload: {model: simulated}\nsimulation: {accelerator: V100, truth: &t {a: *t}}\n",
            "s.yaml:3:40: this is nested too deeply: 16 levels at most"},
        Mistake{"study: s\nworkload: [\n",
                "s.yaml:3:1: this is no valid YAML: end of sequence flow not found"}));

TEST(StudyFile, AMissingFileIsNamed) {
    try {
        read_study("/nonexistent/study.yaml");
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "cannot read the study file /nonexistent/study.yaml: No such file or directory");
    }
}

}  // namespace
}  // namespace joulemark::study
