// SPDX-License-Identifier: Apache-2.0
#include "engine/streams.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::train {
namespace {

int first_error = 0;  ///< of standard output: the stream itself only knows that there was one

}  // namespace

void prepare_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            open("/dev/null", O_RDWR);  // the lowest number that is free: this one
        }
    }
    std::signal(SIGPIPE, SIG_IGN);
}

void say(std::string_view line) noexcept {
    flockfile(stderr);  // a line of another thread must not come between
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
    funlockfile(stderr);
}

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && first_error == 0) {
        first_error = errno;
    }
}

void flush_output() {
    if (std::fflush(stdout) != 0 && first_error == 0) {
        first_error = errno;
    }
    if (first_error != 0) {
        throw environment_error("cannot write to standard output: {}", std::strerror(first_error));
    }
}

}  // namespace joulemark::train
