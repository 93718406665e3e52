// SPDX-License-Identifier: Apache-2.0
#include "core/streams.h"

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace joulemark {
namespace {

[[noreturn]] void speak_to(int fd) {
    dup2(fd, STDERR_FILENO);
    say("a line");
    say_text("a text");
    std::_Exit(7);
}

TEST(StreamsDeathTest, AFullDiskBehindStandardErrorDoesNotStopTheWork) {
    EXPECT_EXIT(speak_to(open("/dev/full", O_WRONLY)), testing::ExitedWithCode(7), "");
}

TEST(StreamsDeathTest, AReaderOfStandardErrorThatWentAwayDoesNotStopTheWork) {
    EXPECT_EXIT(
        {
            int ends[2];
            std::signal(SIGPIPE, SIG_DFL);
            if (pipe(ends) == 0 && close(ends[0]) == 0) {
                speak_to(ends[1]);
            }
        },
        testing::ExitedWithCode(7), "");
}

TEST(StreamsDeathTest, AClosedStandardErrorIsNotTakenByAFile) {
    EXPECT_EXIT(
        {
            close(STDERR_FILENO);
            open_standard_streams();
            std::_Exit(open("/dev/zero", O_RDONLY) > STDERR_FILENO ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
}

TEST(Streams, LinesEndAndTextsDoNot) {
    testing::internal::CaptureStderr();
    say("a line");
    say_text("a text");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "a line\na text");
}

}  // namespace
}  // namespace joulemark
