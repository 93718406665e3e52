// SPDX-License-Identifier: Apache-2.0
#include "study/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::study {
namespace {

class PlanFile : public testing::Test {
  protected:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("joulemark_plan_file_test_" + std::to_string(getpid()));
    void SetUp() override { files::make_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static Study parse(const std::string& lines) {
        return parse_study("study: s\nseed: 1\nworkload: {command: [work, \"{gpus}\"]}\n" + lines, "s.yaml");
    }
    /// Plans, continues what the folder holds, writes; the identifiers in order.
    std::vector<std::string> call(const std::string& lines) {
        const Study study = parse(lines);
        auto runs = plan(study, {});
        continue_plan(folder_, study, runs);
        write_plan(folder_, study, runs);
        std::vector<std::string> ids;
        for (const PlannedRun& run : runs) {
            ids.push_back(run.id);
            EXPECT_EQ(run.position, static_cast<int>(ids.size()));
        }
        return ids;
    }
    void finish(const std::string& run) {
        const auto host = folder_ / "runs" / run / "node";
        files::make_directories(host);
        files::write_atomically(host / "run.json", R"({"expected_hosts":["node"]})");
        files::write_atomically(host / "end.json", R"({"exit_status":0})");
    }
    std::string complaint(const std::string& lines) {
        try {
            call(lines);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            return error.what();
        }
        return "accepted";
    }
};

TEST_F(PlanFile, AddedRunsFollowThoseAlreadyPlanned) {
    const auto before = call("factors: {gpus: [1, 2, 3, 4]}\n");
    finish(before.back());
    const auto after = call("repeats: 2\nfactors: {gpus: [1, 2, 3, 4, 5]}\n");
    ASSERT_EQ(after.size(), 10U);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    EXPECT_EQ(call("repeats: 2\nfactors: {gpus: [1, 2, 3, 4, 5]}\n"), after);
}

TEST_F(PlanFile, AnyOtherChangeIsRefusedAndNamed) {
    call("rate_hz: 1\nfactors: {gpus: [1, 2]}\n");
    finish("work-g1-r1");
    EXPECT_THAT(complaint("rate_hz: 10\nfactors: {gpus: [1, 2]}\n"),
                testing::HasSubstr("(rate_hz was 1.0 and is 10.0): use another directory with -o"));
    EXPECT_THAT(complaint("rate_hz: 1\nfactors: {gpus: [1]}\n"),
                testing::HasSubstr("(run work-g2-r1 is gone)"));
    EXPECT_EQ(complaint("timeout_s: 5\nrate_hz: 1\nfactors: {gpus: [1, 2]}\n"), "accepted");
    const Study other = parse_study(
        "study: s\nseed: 1\nrate_hz: 1\nfactors: {gpus: [1, 2]}\n"
        "workload: {command: [work, --fast, \"{gpus}\"]}\n",
        "s.yaml");
    auto runs = plan(other, {});
    EXPECT_THROW(continue_plan(folder_, other, runs), Error);
}

TEST_F(PlanFile, AnotherStudysDirectoryIsRefused) {
    finish(call("").front());
    const Study other = parse_study("study: t\nworkload: {command: [work]}\n", "t.yaml");
    auto runs = plan(other, {});
    EXPECT_THROW(continue_plan(folder_, other, runs), Error);
}

TEST_F(PlanFile, WithoutAFinishedRunNothingContradictsAChange) {
    call("rate_hz: 1\nfactors: {gpus: [1, 2]}\n");
    files::make_directories(folder_ / "runs" / "work-g2-r1" / "node");  // an attempt that was cut
    const Study study = parse("rate_hz: 10\nfactors: {gpus: [1, 3]}\n");
    auto runs = plan(study, {});
    EXPECT_THAT(continue_plan(folder_, study, runs), testing::ElementsAre("work-g2-r1"));
    EXPECT_EQ(runs.size(), 2U);
}

TEST_F(PlanFile, ADamagedFileIsNamed) {
    for (const char* text : {"", "{", "[]", R"({"study": "s"})", R"({"study": 3})"}) {
        files::write_atomically(folder_ / "study.json", text);
        EXPECT_THAT(complaint(""), testing::HasSubstr("study.json is damaged")) << text;
    }
}

}  // namespace
}  // namespace joulemark::study
