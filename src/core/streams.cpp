// SPDX-License-Identifier: Apache-2.0
#include "core/streams.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace joulemark {
namespace {

/// While it lives, writing to a pipe without a reader only fails, in this thread. The signal's disposition
/// stays as it is: programs started from here inherit it.
class PipeSignalHeld {
  public:
    PipeSignalHeld() {
        sigset_t pending;
        was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~PipeSignalHeld() {
        const timespec at_once{};
        if (!was_pending_) {
            sigtimedwait(&pipe_, nullptr, &at_once);
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    PipeSignalHeld(const PipeSignalHeld&) = delete;
    PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

  private:
    sigset_t pipe_, before_;
    bool was_pending_;
};

void write(std::string_view text, std::string_view end) noexcept {
    const PipeSignalHeld held;
    flockfile(stderr);  // a line of another thread must not come between
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fwrite(end.data(), 1, end.size(), stderr);
    std::fflush(stderr);
    funlockfile(stderr);
}

}  // namespace

void open_standard_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            open("/dev/null", O_RDWR | O_CLOEXEC);  // the lowest number that is free: this one
        }
    }
}

void say(std::string_view line) noexcept {
    write(line, "\n");
}

void say_text(std::string_view text) noexcept {
    write(text, "");
}

}  // namespace joulemark
