// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/files.h"
#include "meter/message.h"

namespace joulemark::meter {

/// Whether somebody listens at this path: one that a crash left behind refuses.
bool listens(const std::string& socket_path);

/// The datagram socket that programs send their messages to, and the thread that takes them. Only this user
/// can send. A message that is no message is counted, and changes nothing.
class MarkerSocket {
  public:
    /// Called on the socket's thread for every message, with the arrival time; a simulated clock is held.
    using Take = std::function<void(Message message, std::int64_t now_ns)>;

    /// Removes sockets of this user that killed meters left in `folder`. Throws environment_error when no socket
    /// can be made there.
    MarkerSocket(const std::filesystem::path& folder, Clock& clock, Take take);
    /// Removes the socket.
    ~MarkerSocket();
    MarkerSocket(const MarkerSocket&) = delete;
    MarkerSocket& operator=(const MarkerSocket&) = delete;

    /// Takes what has arrived so far, and ends the thread.
    void stop();

    const std::string& path() const { return path_; }
    std::uint64_t malformed() const { return malformed_; }             ///< after `stop`
    const std::string& first_complaint() const { return complaint_; }  ///< after `stop`

  private:
    void loop();
    bool take_one();

    Clock& clock_;
    Take take_;
    std::string path_;
    std::string buffer_;
    files::Descriptor socket_, wake_;
    std::uint64_t malformed_ = 0;
    std::string complaint_;
    std::thread thread_;
};

/// Sends messages to the socket of another meter. Never waits: what that one cannot take is lost, and told
/// with the next message that gets through.
class MarkerSender {
  public:
    explicit MarkerSender(std::string path);
    void send(const Message& message);

  private:
    bool pass_on(const Message& message) const;

    std::string path_;
    std::uint64_t lost_ = 0;
    files::Descriptor socket_;
};

}  // namespace joulemark::meter
