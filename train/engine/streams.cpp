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
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        throw environment_error("cannot write to standard output: {}",
                                errno != 0 ? std::strerror(errno) : "an earlier part was not taken");
    }
}

}  // namespace joulemark::train
