// SPDX-License-Identifier: Apache-2.0
#include "launch/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "launch/programs.h"

namespace joulemark::launch {
namespace {

class Processes : public testing::Test {
  protected:
    std::filesystem::path log_ =
        std::filesystem::temp_directory_path() / ("joulemark_process_test_" + std::to_string(getpid()));
    SignalGate gate_;

    void TearDown() override { std::filesystem::remove(log_); }
    int finish(const Invocation& invocation) {
        Process process(invocation, log_, gate_);
        while (!process.status()) {
            gate_.wait(std::chrono::milliseconds(100));
        }
        return *process.status();
    }
    std::string log() const { return files::read(log_).value_or("no log"); }
};

TEST_F(Processes, KeepExitStatusOutputAndEnvironment) {
    EXPECT_EQ(finish({{"sh", "-c", "echo $ADDED; echo error >&2; cat; exit 7"}, {{"ADDED", "a value"}}}), 7);
    EXPECT_EQ(log(), "a value\nerror\n");
}

TEST_F(Processes, ReplaceAVariableInsteadOfDoublingIt) {
    EXPECT_EQ(finish({{"sh", "-c", "env | grep -c ^PATH="}, {{"PATH", "/usr/bin:/bin"}}}), 0);
    EXPECT_EQ(log(), "1\n");
}

TEST_F(Processes, ThatCannotStartSayWhy) {
    EXPECT_EQ(finish({{"/nonexistent/program"}, {}}), 127);
    EXPECT_EQ(log(), "joulemark: cannot execute /nonexistent/program: No such file or directory\n");
    EXPECT_EQ(finish({{"/dev/null"}, {}}), 126);
}

TEST_F(Processes, HaveTheSignalsOfBeforeTheGate) {
    EXPECT_EQ(finish({{"sh", "-c", "kill -TERM $$; exit 0"}, {}}), 128 + SIGTERM);
}

TEST_F(Processes, AreNotLeftBehind) {
    { const Process process({{"sh", "-c", "echo $$ >&2; exec sleep 100"}, {}}, log_, gate_); }
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(Processes, NeedALogThatCanBeWritten) {
    EXPECT_THROW(Process({{"true"}, {}}, "/nonexistent/log", gate_), Error);
}

TEST(Programs, AreFoundBesideThisOneThenOnThePath) {
    EXPECT_EQ(find_program(own_program().filename().string()), own_program());
    EXPECT_TRUE(find_program("sh"));
    EXPECT_FALSE(find_program("joulemark-no-such-program"));
    EXPECT_FALSE(find_program("/dev/null"));
}

}  // namespace
}  // namespace joulemark::launch
