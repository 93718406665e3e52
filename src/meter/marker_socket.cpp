// SPDX-License-Identifier: Apache-2.0
#include "meter/marker_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/error.h"
#include "meter/node_folder.h"

namespace joulemark::meter {
namespace {

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw environment_error("the socket path {} is too long", path);
    }
    std::ranges::copy(path, address.sun_path);
    return address;
}

constexpr std::string_view socket_prefix = "joulemark-", socket_suffix = ".sock";
constexpr std::size_t longest_name = 46;  ///< with the longest folder it fits into an address

/// 0 where somebody listens.
int connect_error(const std::string& path) {
    const sockaddr_un address = address_of(path);
    const files::Descriptor probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

/// Sockets whose meter was killed. One that just begins refuses for a moment too, but its process is there.
void remove_dead_sockets(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
        const std::string name = entries->path().filename();
        if (!name.starts_with(socket_prefix) || !name.ends_with(socket_suffix)) {
            continue;
        }
        const pid_t meter = std::atoi(name.c_str() + socket_prefix.size());
        const bool gone = meter > 0 && kill(meter, 0) != 0 && errno == ESRCH;
        if (gone && name.size() < longest_name && connect_error(entries->path()) == ECONNREFUSED) {
            unlink(entries->path().c_str());  // fails for those of other users
        }
    }
}

}  // namespace

bool listens(const std::string& socket_path) {
    return !socket_path.empty() && socket_path.size() < sizeof(sockaddr_un::sun_path) &&
           connect_error(socket_path) == 0;
}

std::filesystem::path node_folder() {
    constexpr std::size_t longest = 60;  // leaves room for a file name in a socket's 108 bytes
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::array<std::string, 4> candidates{runtime == nullptr ? "" : runtime,
                                                fmt::format("/run/user/{}", getuid()), "/dev/shm", "/tmp"};
    for (const std::string& candidate : candidates) {
        if (candidate.starts_with('/') && candidate.size() <= longest &&
            access(candidate.c_str(), W_OK | X_OK) == 0) {
            return candidate;
        }
    }
    throw environment_error(
        "no writable folder for the marker socket: tried XDG_RUNTIME_DIR, /run/user/{}, /dev/shm, /tmp",
        getuid());
}

MarkerSocket::MarkerSocket(const std::filesystem::path& folder, Clock& clock, Take take)
    : clock_(clock),
      take_(std::move(take)),
      path_(folder / fmt::format("{}{}-{:x}{}", socket_prefix, getpid(), MonotonicClock().now_ns(), socket_suffix)),
      buffer_(max_message_bytes + 1, '\0'),
      socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    remove_dead_sockets(folder);
    const sockaddr_un address = address_of(path_);
    const mode_t mask = umask(0177);  // only this user; no thread that makes files runs yet
    const int bound = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int error = errno;
    umask(mask);
    if (!wake_ || bound != 0) {
        throw environment_error("cannot make the marker socket {}: {}", path_, std::strerror(error));
    }
    // A full queue makes senders wait: room for bursts from many ranks, as far as the kernel allows.
    const int bytes = 4 << 20;
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    thread_ = std::thread([this] { loop(); });
}

MarkerSocket::~MarkerSocket() {
    stop();
    unlink(path_.c_str());
}

void MarkerSocket::stop() {
    if (thread_.joinable()) {
        eventfd_write(wake_.get(), 1);
        thread_.join();
    }
}

void MarkerSocket::loop() {
    std::array<pollfd, 2> waits{pollfd{socket_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    while (true) {
        poll(waits.data(), waits.size(), -1);
        const bool stopping = (waits[1].revents & POLLIN) != 0;
        // A stream without end from a process left behind must not keep the meter.
        const std::int64_t until = MonotonicClock().now_ns() + 1'000'000'000;
        while (take_one() && !(stopping && MonotonicClock().now_ns() > until)) {
        }
        if (stopping) {
            return;
        }
    }
}

bool MarkerSocket::take_one() {
    // The sender of simulated work waits until its datagram is taken: held from before that until the sample
    // at the edge is there, the clock shows the very instant of the mark.
    pollfd ready{socket_.get(), POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) {
        return false;
    }
    const auto hold = clock_.hold();
    const ssize_t size = recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_TRUNC);
    if (size < 0) {
        return false;
    }
    const auto bytes = static_cast<std::size_t>(size);
    auto message =
        bytes > max_message_bytes
            ? Result<Message>(Failure{fmt::format("it is longer than {} bytes", max_message_bytes), ""})
            : parse_message(std::string_view(buffer_).substr(0, bytes));
    if (message) {
        take_(std::move(*message), clock_.now_ns());
    } else {
        complaint_ = malformed_ == 0 ? message.failure().reason : complaint_;
        ++malformed_;
    }
    return true;
}

MarkerSender::MarkerSender(std::string path)
    : path_(std::move(path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

void MarkerSender::send(const Message& message) {
    lost_ += pass_on(message) ? 0 : 1;
    if (lost_ == 0) {
        return;
    }
    Message tally;
    tally.event = Message::Event::lost;
    tally.rank = message.rank;
    tally.count = lost_;
    if (pass_on(tally)) {
        lost_ = 0;
    }
}

bool MarkerSender::pass_on(const Message& message) const {
    const sockaddr_un address = address_of(path_);
    const std::string text = to_json(message);
    return sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), sizeof address) >= 0;
}

}  // namespace joulemark::meter
