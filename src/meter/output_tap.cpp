// SPDX-License-Identifier: Apache-2.0
#include "meter/output_tap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "core/error.h"
#include "core/units.h"

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

bool output_and_error_are_one() {
    struct stat output {};
    struct stat error {};
    return fstat(STDOUT_FILENO, &output) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
           output.st_dev == error.st_dev && output.st_ino == error.st_ino;
}

}  // namespace

OutputTap::OutputTap(std::vector<std::unique_ptr<LogReader>> readers, Clock& clock, Take take)
    : readers_(std::move(readers)),
      clock_(clock),
      take_(std::move(take)),
      ended_(eventfd(0, EFD_CLOEXEC)),
      matched_(readers_.size()) {
    streams_.push_back(open(STDOUT_FILENO));
    if (!output_and_error_are_one()) {
        streams_.push_back(open(STDERR_FILENO));
    }
    if (!ended_) {
        throw environment_error("cannot tap the command's output: {}", std::strerror(errno));
    }
    copy_window_size();
}

OutputTap::~OutputTap() {
    finish();
}

std::unique_ptr<OutputTap::Stream> OutputTap::open(int target) {
    auto stream = std::make_unique<Stream>(Stream{.target = target, .terminal = isatty(target) == 1});
    std::array<int, 2> ends{-1, -1};
    const int failed = stream->terminal ? openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr)
                                        : pipe2(ends.data(), O_CLOEXEC);
    stream->our_side = files::Descriptor(ends[0]);
    stream->command_side = files::Descriptor(ends[1]);
    if (failed != 0) {
        throw environment_error("cannot tap the command's output: {}", std::strerror(errno));
    }
    fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK);
    if (stream->terminal) {
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        termios settings{};
        tcgetattr(ends[1], &settings);
        cfmakeraw(&settings);  // the real terminal translates; twice would change the bytes
        tcsetattr(ends[1], TCSANOW, &settings);
    }
    return stream;
}

std::array<int, 2> OutputTap::command_sides() const {
    return {streams_.front()->command_side.get(), streams_.back()->command_side.get()};
}

void OutputTap::copy_window_size() const {
    for (const auto& stream : streams_) {
        winsize size{};
        if (stream->terminal && ioctl(stream->target, TIOCGWINSZ, &size) == 0) {
            ioctl(stream->our_side.get(), TIOCSWINSZ, &size);
        }
    }
}

void OutputTap::start() {
    start_ns_ = clock_.now_ns();
    std::vector<Message> messages;
    for (const auto& reader : readers_) {
        reader->start(messages);
    }
    tell(messages);
    for (const auto& stream : streams_) {
        stream->command_side.reset();
        stream->thread = std::thread([this, &stream = *stream] { loop(stream); });
    }
}

void OutputTap::finish(bool cut_short) {
    if (!streams_.front()->thread.joinable()) {
        return;
    }
    eventfd_write(ended_.get(), 1);
    std::vector<Message> messages;
    for (const auto& stream : streams_) {
        stream->thread.join();
        stream->cutter.finish([&](std::string_view line) { read(line, messages); });
    }
    end_ns_ = clock_.now_ns();
    doubt(messages);
    tell(messages);
    messages.clear();
    for (const auto& reader : readers_) {
        reader->finish(messages);
    }
    doubt(messages);
    for (Message& message : messages) {
        message.event = cut_short ? Message::Event::abort : message.event;
    }
    tell(messages);
}

void OutputTap::loop(Stream& stream) {
    std::array<pollfd, 2> waits{pollfd{stream.our_side.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
    while (true) {
        poll(waits.data(), waits.size(), -1);
        if ((waits[1].revents & POLLIN) != 0) {
            break;
        }
        if (pass_some(stream) == Passed::closed) {
            // The command closed its output, or nobody reads ours: it is told as it would be without us.
            stream.our_side.reset();
            return;
        }
    }
    // All that the command left, however long its readers or ours take; a descendant that goes on writing is
    // not waited for.
    int left = 0;
    ioctl(stream.our_side.get(), FIONREAD, &left);
    const std::uint64_t end = stream.passed + static_cast<std::uint64_t>(left);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while ((stream.passed < end || std::chrono::steady_clock::now() < until) &&
           pass_some(stream) == Passed::some) {
    }
}

OutputTap::Passed OutputTap::pass_some(Stream& stream) {
    std::array<char, 16 << 10> block;
    const ssize_t got = ::read(stream.our_side.get(), block.data(), block.size());
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
    stream.passed += bytes.size();
    if (!write_all(stream.target, bytes)) {
        return Passed::closed;
    }
    const std::scoped_lock lock(mutex_);
    std::vector<Message> messages;
    stream.cutter.feed(bytes, [&](std::string_view line) { read(line, messages); });
    doubt(messages);
    tell(messages);
    return Passed::some;
}

void OutputTap::read(std::string_view line, std::vector<Message>& messages) {
    ++lines_;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
        const std::size_t before = messages.size();
        readers_[i]->read(line, messages);
        matched_[i] = matched_[i] || messages.size() > before;
    }
}

/// `messages` are those of one read. Where a region both begins and ends in it, the lines have waited for each
/// other somewhere, and nobody knows the times of any edge of that name among them.
void OutputTap::doubt(std::vector<Message>& messages) {
    std::set<std::pair<std::string, std::optional<std::int64_t>>> begun;
    std::set<std::string> whole;
    for (const Message& message : messages) {
        if (message.event == Message::Event::begin) {
            begun.emplace(message.name, message.index);
        } else if (message.event == Message::Event::end && begun.contains({message.name, message.index})) {
            whole.insert(message.name);
        }
    }
    for (Message& message : messages) {
        if (message.event == Message::Event::begin && whole.contains(message.name)) {
            late_.insert(message.name);
        } else if (message.event == Message::Event::end &&
                   (late_.erase(message.name) > 0 || whole.contains(message.name))) {
            message.event = Message::Event::abort;
            ++late_regions_;
        }
    }
}

void OutputTap::tell(std::vector<Message>& messages) {
    for (Message& message : messages) {
        if (message.event == Message::Event::begin && message.source == "regex") {
            begins_.last_ns = clock_.now_ns();
            begins_.first_ns = begins_.count++ == 0 ? begins_.last_ns : begins_.first_ns;
        }
        take_(std::move(message));
    }
}

std::vector<std::string> OutputTap::unmatched() const {
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
        if (!matched_[i]) {
            warnings.push_back(fmt::format(
                "{} matched no line of the {} on standard output and standard error: it marked nothing",
                readers_[i]->option(), lines_));
        }
    }
    return warnings;
}

std::vector<std::string> OutputTap::doubts() const {
    if (late_regions_ > 0) {
        return {fmt::format("the times of {} region{} are not known, and {} left out: lines that mark begin and end "
                            "arrived at once, so the command holds its output back (python -u, stdbuf -oL)",
                            late_regions_, late_regions_ == 1 ? "" : "s", late_regions_ == 1 ? "it is" : "they are")};
    }
    if (begins_.count < 2) {
        return {};
    }
    const double epoch_s =
        seconds(begins_.last_ns - begins_.first_ns) / static_cast<double>(begins_.count - 1);
    const double before_s = seconds(begins_.first_ns - start_ns_);
    const bool as_long = before_s > epoch_s / 2 && before_s < 2 * epoch_s;
    if (as_long && seconds(end_ns_ - begins_.last_ns) < epoch_s / 10) {
        return {"--epoch-regex: the lines look like the ends of epochs, not their begins, since the first came after "
                "an epoch's time and the last at the command's end: give the pattern as --epoch-end-regex"};
    }
    return {};
}

}  // namespace joulemark::meter
