// SPDX-License-Identifier: Apache-2.0
#include "engine/marks.h"

#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "core/clock.h"

namespace joulemark::train {
namespace {

files::Descriptor connect_to_meter() {
    const char* path = std::getenv("JOULEMARK_SOCKET");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path == nullptr || std::strlen(path) == 0 || std::strlen(path) >= sizeof address.sun_path) {
        return {};
    }
    std::strcpy(address.sun_path, path);
    files::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // A full queue delays the sender a moment instead of losing an edge; a meter that hangs does not stop the
    // training.
    const timeval patience{1, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return {};
    }
    return socket;
}

}  // namespace

Marks::Marks(int rank) : rank_(rank), socket_(connect_to_meter()) {}

void Marks::send(nlohmann::json message) const {
    if (socket_) {
        message["rank"] = rank_;
        const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
}

void Marks::config(const nlohmann::json& data) const {
    send({{"event", "config"}, {"t", now_ns()}, {"data", data}});
}

void Marks::note(const nlohmann::json& data) const {
    send({{"event", "note"}, {"t", now_ns()}, {"data", data}});
}

void Marks::begin(std::string_view region, std::int64_t index, std::int64_t time_ns) const {
    send({{"event", "begin"}, {"name", region}, {"index", index}, {"t", time_ns}});
}

void Marks::end(std::string_view region, std::int64_t index, std::int64_t time_ns,
                const RegionCounts& counts) const {
    nlohmann::json message = {{"event", "end"},
                              {"name", region},
                              {"index", index},
                              {"t", time_ns},
                              {"samples", counts.samples},
                              {"updates", counts.updates}};
    if (counts.tokens > 0) {
        message["tokens"] = counts.tokens;
    }
    if (counts.loss) {
        message["loss"] = *counts.loss;
    }
    if (counts.quality) {
        message["quality"] = {{"name", counts.quality->name},
                              {"value", counts.quality->value},
                              {"direction", counts.quality->direction}};
    }
    send(std::move(message));
}

std::int64_t Marks::now_ns() {
    return MonotonicClock().now_ns();
}

}  // namespace joulemark::train
