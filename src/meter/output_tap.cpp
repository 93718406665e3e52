// SPDX-License-Identifier: Apache-2.0
#include "meter/output_tap.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::meter {
namespace {

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = write(fd, bytes.data(), bytes.size());
        if (wrote > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(wrote));
        } else if (errno == EAGAIN) {  // whoever gave us this output made it non-blocking
            pollfd room{fd, POLLOUT, 0};
            poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace

OutputTap::OutputTap(std::vector<std::unique_ptr<LogReader>> readers, Take take)
    : readers_(std::move(readers)),
      take_(std::move(take)),
      ended_(eventfd(0, EFD_CLOEXEC)),
      terminal_(isatty(STDOUT_FILENO) == 1) {
    std::array<int, 2> ends{-1, -1};
    int failed = 0;
    if (terminal_) {
        failed = openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr);
    } else {
        failed = pipe2(ends.data(), O_CLOEXEC);
    }
    our_side_ = files::Descriptor(ends[0]);
    command_side_ = files::Descriptor(ends[1]);
    if (failed != 0 || !ended_) {
        throw environment_error("cannot tap the command's output: {}", std::strerror(errno));
    }
    fcntl(our_side_.get(), F_SETFL, fcntl(our_side_.get(), F_GETFL) | O_NONBLOCK);
    if (terminal_) {
        fcntl(our_side_.get(), F_SETFD, FD_CLOEXEC);
        fcntl(command_side_.get(), F_SETFD, FD_CLOEXEC);
        termios settings{};
        tcgetattr(command_side_.get(), &settings);
        cfmakeraw(&settings);  // the real terminal translates; twice would change the bytes
        tcsetattr(command_side_.get(), TCSANOW, &settings);
        copy_window_size();
    }
}

OutputTap::~OutputTap() {
    finish();
}

void OutputTap::copy_window_size() const {
    winsize size{};
    if (terminal_ && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        ioctl(our_side_.get(), TIOCSWINSZ, &size);
    }
}

void OutputTap::start() {
    command_side_.reset();
    thread_ = std::thread([this] { loop(); });
}

void OutputTap::finish() {
    if (!thread_.joinable()) {
        return;
    }
    eventfd_write(ended_.get(), 1);
    thread_.join();
    std::vector<Message> messages;
    for (const auto& reader : readers_) {
        reader->finish(messages);
    }
    tell(messages);
}

void OutputTap::loop() {
    std::array<pollfd, 2> waits{pollfd{our_side_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
    while (true) {
        poll(waits.data(), waits.size(), -1);
        if ((waits[1].revents & POLLIN) != 0) {
            break;
        }
        if (pass_some() == Passed::closed) {
            // The command closed its output, or nobody reads ours: it is told as it would be without us.
            our_side_.reset();
            return;
        }
    }
    // All that the command left, however long its readers or ours take; a descendant that goes on writing is
    // not waited for.
    int left = 0;
    ioctl(our_side_.get(), FIONREAD, &left);
    const std::uint64_t end = passed_ + static_cast<std::uint64_t>(left);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while ((passed_ < end || std::chrono::steady_clock::now() < until) && pass_some() == Passed::some) {
    }
}

OutputTap::Passed OutputTap::pass_some() {
    std::array<char, 16 << 10> block;
    const ssize_t got = read(our_side_.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) {
        return Passed::some;
    }
    if (got < 0 && errno == EAGAIN) {
        return Passed::nothing;
    }
    if (got <= 0) {  // a pseudo-terminal says EIO at its end
        return Passed::closed;
    }
    const std::string_view bytes(block.data(), static_cast<std::size_t>(got));
    passed_ += bytes.size();
    if (!write_all(STDOUT_FILENO, bytes)) {
        return Passed::closed;
    }
    std::vector<Message> messages;
    cutter_.feed(bytes, [&](std::string_view line) {
        for (const auto& reader : readers_) {
            reader->read(line, messages);
        }
    });
    tell(messages);
    return Passed::some;
}

void OutputTap::tell(std::vector<Message>& messages) {
    for (Message& message : messages) {
        take_(std::move(message));
    }
}

}  // namespace joulemark::meter
