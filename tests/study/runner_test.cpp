// SPDX-License-Identifier: Apache-2.0
// The runner with a stand-in for `joulemark run`, which leaves the records that the real one would.
#include "study/runner.h"

#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "study/run_state.h"

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* stand_in = R"(#!/bin/bash
# joulemark run -o DIR --run-id ID ... -- COMMAND
[ "$1" = run ] || exit 2
words="$*"
while [ "$1" != -- ]; do
  case $1 in
    -o) dir=$2 ;;
    --run-id) id=$2 ;;
    --power-cap-w) [ "$2" -ge 100 ] || { echo "joulemark: $2 W is not permitted" >&2; exit 3; } ;;
  esac
  shift
done
shift
folder=$dir/runs/$id/node
mkdir -p "$folder"
echo "$words" >> "$dir/calls"
echo '{"expected_hosts":["node"]}' > "$folder/run.json"
"$@"
status=$?
echo "{\"exit_status\":$status}" > "$folder/end.json"
exit $status
)";

class Sweeps : public testing::Test {
  protected:
    fs::path folder_ = fs::temp_directory_path() / ("joulemark_runner_test_" + std::to_string(getpid()));
    fs::path results_ = folder_ / "results";
    Site site_;
    std::optional<double> budget_j_;
    bool keep_going_ = false;
    bool quiet_ = true;

    void SetUp() override {
        files::make_directories(folder_);
        site_.joulemark = folder_ / "joulemark";
        std::ofstream(site_.joulemark) << stand_in;
        fs::permissions(site_.joulemark, fs::perms::owner_all);
        site_.hottest_gpu_c = [] { return std::optional<double>(); };
        site_.used = [](const fs::path&) { return std::optional(Used{1000}); };
    }
    void TearDown() override { fs::remove_all(folder_); }

    /// `script` is what each run does, with placeholders.
    int sweep(const std::string& script, const std::string& lines = "factors: {gpus: [1, 2]}\nrepeats: 2\n") {
        const Study study = parse_study(
            "study: s\nworkload: {name: w, command: [bash, -c, '" + script + "', \"{gpus}\"]}\n" + lines,
            "s.yaml");
        return study::sweep(study, site_,
                            {.directory = results_,
                             .budget_j = budget_j_,
                             .keep_going = keep_going_,
                             .quiet = quiet_,
                             .again = "joulemark sweep s.yaml"});
    }
    std::vector<std::string> calls() const {
        std::vector<std::string> lines;
        std::ifstream file(results_ / "calls");
        for (std::string line; std::getline(file, line);) {
            lines.push_back(line);
        }
        return lines;
    }
    RunState::Kind state(const std::string& run) const { return run_state(results_, run).kind; }
};

TEST_F(Sweeps, MakeEveryRunOnceAndTellTheMeterWhatItIs) {
    EXPECT_EQ(sweep("true",
                    "seed: 5\nidle_s: 0.5\nrate_hz: 10\nfactors: {gpus: [2], power_cap_w: [150], "
                    "local_batch: [8]}\n"),
              0);
    ASSERT_EQ(calls().size(), 1U);
    EXPECT_EQ(
        calls().front(),
        "run -o " + results_.string() +
            " --run-id w-g2-cap150-lb8-r1 --study s --repeat 1 --position 1 --factor workload=w --factor "
            "gpus=2 --factor power_cap_w=150 --factor local_batch=8 --factor global_batch=16 --factor "
            "warmup_epochs=0 "
            "--tag seed=5 --tag train_seed=vary --power-cap-w 150 --idle-s 0.5 --rate 10 -- /usr/bin/bash -c "
            "true 2");
    EXPECT_EQ(sweep("true",
                    "seed: 5\nidle_s: 0.5\nrate_hz: 10\nfactors: {gpus: [2], power_cap_w: [150], "
                    "local_batch: [8]}\n"),
              0);
    EXPECT_EQ(calls().size(), 1U) << "a second call has nothing left to do";
}

TEST_F(Sweeps, GoOnAfterAFailureAndRepeatItNextTime) {
    const std::string script = "[ -e " + (folder_ / "repaired").string() + " ] || [ $0 = 1 ]";
    EXPECT_EQ(sweep(script), 3);
    EXPECT_EQ(calls().size(), 4U);
    EXPECT_EQ(state("w-g1-r2"), RunState::Kind::done);
    EXPECT_EQ(state("w-g2-r1"), RunState::Kind::failed);
    std::ofstream(folder_ / "repaired");
    EXPECT_EQ(sweep(script), 0);
    EXPECT_EQ(calls().size(), 6U);
    EXPECT_EQ(state("w-g2-r1"), RunState::Kind::done);
    EXPECT_TRUE(fs::exists(results_ / "superseded" / "w-g2-r1-1" / "node" / "end.json"));
}

TEST_F(Sweeps, StopWhenThreeRunsInARowFailAndSayTheirLastLine) {
    const std::string lines = "order: as-listed\nfactors: {gpus: [1, 2, 3, 4, 5, 6, 7]}\n";
    // The success in between starts the count anew.
    const std::string script = "echo \"no memory for rank $0\"; [ $0 = 3 ]";
    testing::internal::CaptureStderr();
    EXPECT_EQ(sweep(script, lines), 3);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(calls().size(), 6U);
    EXPECT_THAT(said, testing::HasSubstr("exit status 1, last line \"no memory for rank 6\"; its output is in"));
    EXPECT_THAT(said, testing::HasSubstr("3 runs in a row have failed"));
    EXPECT_THAT(said, testing::HasSubstr("1 of 7 runs done, 5 failed"));
    EXPECT_THAT(said, testing::HasSubstr("make what is missing with: joulemark sweep s.yaml\n"));
    keep_going_ = true;
    EXPECT_EQ(sweep(script, lines), 3);
    EXPECT_EQ(calls().size(), 6U + 6U) << "told to keep going";
}

TEST_F(Sweeps, AreNotStoppedBeforeNothing) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(sweep("false", "factors: {gpus: [1, 2, 3]}\n"), 3);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(testing::HasSubstr("in a row")));
}

TEST_F(Sweeps, StopAtOnceWhenTheDirectoryCanNoLongerBeWritten) {
    const std::string plan = (results_ / "study.json").string();
    testing::internal::CaptureStderr();
    EXPECT_EQ(sweep("rm -f " + plan + "; mkdir -p " + plan + "/full; exit 1"), 3);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("stopped: cannot write " + plan));
    EXPECT_EQ(calls().size(), 1U);
}

TEST_F(Sweeps, TellWhatIsDoneAndWhatTheRestTakes) {
    quiet_ = false;
    testing::internal::CaptureStderr();
    EXPECT_EQ(sweep("true", "order: as-listed\nfactors: {gpus: [1, 2]}\n"), 0);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::ContainsRegex("w-g1-r1: [0-9.]+ ms, 1000 J; 1 of 2 runs done, about [0-9.]+ ms left, "
                                       "[0-9.]+ kB of about [0-9.]+ kB on disk\n.*; 2 of 2 runs done\n"));
}

TEST_F(Sweeps, RepeatACutRunAndKeepTheOldAttemptOutOfTheResults) {
    ASSERT_EQ(sweep("true"), 0);
    fs::remove(results_ / "runs" / "w-g1-r1" / "node" / "end.json");
    EXPECT_EQ(state("w-g1-r1"), RunState::Kind::cut);
    EXPECT_EQ(sweep("true"), 0);
    EXPECT_EQ(calls().size(), 5U);
    EXPECT_EQ(state("w-g1-r1"), RunState::Kind::done);
    EXPECT_TRUE(fs::exists(results_ / "superseded" / "w-g1-r1-1"));
}

TEST_F(Sweeps, AStudyThatOnlyFailedMayBeMendedInItsDirectory) {
    EXPECT_EQ(sweep("false", "order: as-listed\nfactors: {gpus: [1, 2]}\n"), 3);
    EXPECT_EQ(sweep("true", "order: as-listed\nfactors: {gpus: [2, 3]}\n"), 0);
    EXPECT_EQ(state("w-g1-r1"), RunState::Kind::absent);
    EXPECT_TRUE(fs::exists(results_ / "superseded" / "w-g1-r1-1")) << "a failed run of no study";
}

TEST_F(Sweeps, ARunWithoutAllItsHostsIsNotDone) {
    ASSERT_EQ(sweep("true"), 0);
    files::write_atomically(results_ / "runs" / "w-g2-r1" / "node" / "run.json",
                            R"({"expected_hosts":["node","other"]})");
    EXPECT_EQ(state("w-g2-r1"), RunState::Kind::cut);
}

TEST_F(Sweeps, StopAfterASignalAndGoOnLater) {
    // The run signals the sweep as `kill` would, and is signalled in turn: its status says so.
    EXPECT_EQ(sweep("[ $0 = 1 ] || { kill -TERM " + std::to_string(getpid()) + "; sleep 10; }",
                    "order: as-listed\nfactors: {gpus: [1, 2, 3]}\n"),
              128 + SIGTERM);
    EXPECT_EQ(calls().size(), 2U);
    EXPECT_EQ(state("w-g1-r1"), RunState::Kind::done);
    EXPECT_NE(state("w-g2-r1"), RunState::Kind::done);
    EXPECT_EQ(state("w-g3-r1"), RunState::Kind::absent);
}

TEST_F(Sweeps, SkipWhatTheMachineDoesNotPermitAndTryItOncePerConfiguration) {
    EXPECT_EQ(sweep("true", "repeats: 2\nfactors: {power_cap_w: [50, 150]}\n"), 0);
    EXPECT_EQ(calls().size(), 2U);
    const auto plan = nlohmann::json::parse(*files::read(results_ / "study.json"));
    int skipped = 0;
    for (const auto& run : plan["runs"]) {
        if (run["factors"]["power_cap_w"] == 50) {
            EXPECT_EQ(run["skipped"], "50 W is not permitted");
            ++skipped;
        }
    }
    EXPECT_EQ(skipped, 2);
}

TEST_F(Sweeps, WithNothingButSkippedRunsAreNoSuccess) {
    EXPECT_EQ(sweep("true", "factors: {power_cap_w: [50]}\n"), 3);
}

TEST_F(Sweeps, AnExitStatusOfThreeOfTheCommandIsAFailure) {
    EXPECT_EQ(sweep("exit 3", "factors: {power_cap_w: [150]}\n"), 3);
    EXPECT_EQ(state("w-cap150-r1"), RunState::Kind::failed);
}

TEST_F(Sweeps, ALauncherThatFailsIsAFailureWhateverTheHostsSay) {
    // As srun does when a node's daemon dies at the end: the records say 0, the status 1.
    std::string script = stand_in;
    script.replace(script.rfind("exit $status"), 12, "[ -e '" + (folder_ / "repaired").string() + "' ]");
    std::ofstream(site_.joulemark) << script;
    EXPECT_EQ(sweep("true", ""), 3);
    EXPECT_EQ(state("w-r1"), RunState::Kind::absent) << "its record would pass for a good one";
    EXPECT_TRUE(fs::exists(results_ / "superseded" / "w-r1-1"));
    std::ofstream(folder_ / "repaired");
    EXPECT_EQ(sweep("true", ""), 0);
    EXPECT_EQ(calls().size(), 2U);
}

TEST_F(Sweeps, StopBeforeTheBudgetIsExceeded) {
    budget_j_ = 2500;
    EXPECT_EQ(sweep("true"), 3);
    EXPECT_EQ(calls().size(), 2U);
    EXPECT_EQ(sweep("true"), 3) << "earlier runs count";
    EXPECT_EQ(calls().size(), 2U);
    budget_j_ = 4000;
    EXPECT_EQ(sweep("true"), 0);
}

TEST_F(Sweeps, EndARunThatTakesTooLong) {
    EXPECT_EQ(sweep("sleep 60", "timeout_s: 0.2\n"), 3);
    EXPECT_NE(state("w-r1"), RunState::Kind::done);
}

TEST_F(Sweeps, WaitForTheGpuToCool) {
    int asked = 0;
    site_.hottest_gpu_c = [&] { return std::optional<double>(++asked < 2 ? 80 : 40); };
    EXPECT_EQ(sweep("true", "cooldown_c: 50\n"), 0);
    EXPECT_GE(asked, 2);
}

TEST_F(Sweeps, OneAtATimePerDirectory) {
    files::make_directories(results_);
    const files::Descriptor other(
        open((results_ / "study.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
    EXPECT_THROW(sweep("true"), Error);
    EXPECT_TRUE(calls().empty());
}

TEST_F(Sweeps, ACommandThatIsNowhereIsFoundBeforeTheFirstRun) {
    const std::string head = "study: s\nworkload: {name: w, command: [/nonexistent/train.py]}\n";
    const auto found = [&](const std::string& lines) { return obstacles(parse_study(head + lines, "s.yaml"), site_); };
    ASSERT_EQ(found("").size(), 1U);
    EXPECT_EQ(found("").front().code(), ExitCode::environment);
    EXPECT_THAT(found("").front().what(), testing::HasSubstr("'/nonexistent/train.py'"));
    EXPECT_TRUE(found("env: {PATH: /opt/bin}\n").empty()) << "it may be found there";
}

TEST_F(Sweeps, ControlsAreDoubtedWhereNothingCanSetThem) {
    const auto problem = [&](const std::string& lines) {
        return controls_problem(parse_study("study: s\nworkload: {command: [w]}\n" + lines, "s.yaml"), site_);
    };
    EXPECT_THAT(problem(""), testing::HasSubstr("no GPU"));
    EXPECT_THAT(problem("launcher: slurm\n"), testing::HasSubstr("root"));
    EXPECT_EQ(problem("simulation: {accelerator: V100}\n"), "");
    site_.limits.gpus = 2;
    EXPECT_THAT(problem(""), testing::HasSubstr("root"));
    site_.job.root = true;
    EXPECT_EQ(problem(""), "");
}

TEST_F(Sweeps, MissingProgramsAndDataAreFoundBeforeTheFirstRun) {
    const Study simulated =
        parse_study("study: s\nworkload: {model: simulated}\nsimulation: {accelerator: V100}\n", "s.yaml");
    const char* path = std::getenv("PATH");
    const std::string before = path == nullptr ? "" : path;
    setenv("PATH", "/nonexistent", 1);
    EXPECT_THROW(study::sweep(simulated, site_, {.directory = results_, .budget_j = {}}), Error);
    setenv("PATH", before.c_str(), 1);
    EXPECT_FALSE(fs::exists(results_));
}

}  // namespace
}  // namespace joulemark::study
