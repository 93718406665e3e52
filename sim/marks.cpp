// SPDX-License-Identifier: Apache-2.0
#include "sim/marks.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include <linux/sockios.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "core/clock.h"
#include "core/units.h"

namespace joulemark::sim {
namespace {

constexpr timespec look_again{0, 20'000};
constexpr std::int64_t patience_ns = 2 * ns_per_s;  // a receiver that is slower has stopped

}  // namespace

Marks::Marks(bool wait) : wait_(wait) {
    const char* path = std::getenv("JOULEMARK_SOCKET");
    sockaddr_un address{};
    if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) {
        return;
    }
    address.sun_family = AF_UNIX;
    std::string_view(path).copy(address.sun_path, sizeof address.sun_path - 1);
    files::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    constexpr timeval patience{patience_ns / ns_per_s, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (socket && connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        socket_ = std::move(socket);
    }
}

void Marks::send(const nlohmann::json& mark) {
    if (!socket_) {
        return;
    }
    const std::string text = mark.dump();
    if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) {
        socket_.reset();  // nobody listens any more, or has stopped to; training goes on
        return;
    }
    const MonotonicClock clock;
    const std::int64_t deadline = clock.now_ns() + patience_ns;
    int unread = 0;
    while (wait_ && ioctl(socket_.get(), SIOCOUTQ, &unread) == 0 && unread > 0) {
        nanosleep(&look_again, nullptr);
        wait_ = clock.now_ns() < deadline;
    }
}

}  // namespace joulemark::sim
