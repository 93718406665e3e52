// SPDX-License-Identifier: Apache-2.0
#include "study/remaining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "study/dry_run.h"

namespace joulemark::study {
namespace {

class RemainingTest : public testing::Test {
  protected:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("joulemark_remaining_test_" + std::to_string(getpid()));
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static Study parse(const std::string& lines) {
        return parse_study("study: s\norder: as-listed\nworkload: {command: [work, \"{gpus}\"], epochs: 2}\n" + lines,
                           "s.yaml");
    }
    /// A done run of 100 s by `clock` and 1000 bytes, beside its JSON files.
    void finish(const std::string& run, const std::string& clock) {
        const auto host = folder_ / "runs" / run / "node";
        files::make_directories(host);
        files::write_atomically(host / "run.json", R"({"expected_hosts":["node"],"start_ns":1000000000,"clock":")" + clock + "\"}");
        files::write_atomically(host / "end.json", R"({"exit_status":0,"end_ns":101000000000})");
        files::write_atomically(host / "gpu.csv", std::string(1000, 'x'));
    }
    Remaining of(const Study& study) { return remaining(folder_, study, plan(study, {})); }
};

TEST_F(RemainingTest, IsExpectedBeforeTheFirstRunWithTheIdleTimeAround) {
    const Study study = parse(
        "idle_s: 30\nfactors: {gpus: [1, 2]}\nexpect: {epoch_time_s: 100, gpu_exponent: -1, source: assumption}\n");
    const Remaining rest = of(study);
    EXPECT_EQ(rest.left, 2U);
    EXPECT_DOUBLE_EQ(rest.wall_s, 2 * 100 + 60 + 2 * 50 + 60);
    EXPECT_TRUE(rest.time_is_expected);
    EXPECT_FALSE(rest.disk_bytes) << "nothing is known of it";
    EXPECT_THAT(dry_run_text(study, plan(study, {}), rest, {}),
                testing::HasSubstr("to be made: 2 runs, 0 are done; elapsed about 7 min 00 s (from the study's expect"));
}

TEST_F(RemainingTest, FollowsFromFinishedRunsOnceThereAreSome) {
    const Study study = parse("idle_s: 30\nfactors: {gpus: [1, 2, 3]}\nexpect: {epoch_time_s: 9, source: assumption}\n");
    finish("work-g1-r1", "monotonic");
    const Remaining rest = of(study);
    EXPECT_EQ(rest.done, 1U);
    EXPECT_DOUBLE_EQ(rest.wall_s, 2 * 130);
    EXPECT_FALSE(rest.time_is_expected);
    EXPECT_GT(rest.disk_used_bytes, 1000);
    EXPECT_DOUBLE_EQ(rest.disk_bytes.value(), 2 * rest.disk_used_bytes);
    EXPECT_THAT(rest.text(false), testing::StartsWith("1 of 3 runs done, about 4 min 20 s left, 1."));
}

TEST_F(RemainingTest, IsUnknownWhereOnlyASimulatedClockTellsTheTime) {
    const Study study = parse(
        "simulation: {accelerator: V100}\nfactors: {gpus: [1, 2]}\nexpect: {epoch_time_s: 9, source: assumption}\n");
    finish("work-g1-r1", "simulated");
    const Remaining rest = of(study);
    EXPECT_EQ(rest.without_time, 1U);
    EXPECT_TRUE(dry_run_json(study, plan(study, {}), rest, {})["remaining"]["elapsed_s"].is_null());
    EXPECT_THAT(rest.text(true), testing::StartsWith("1 of 2 runs done, 1."));
}

}  // namespace
}  // namespace joulemark::study
