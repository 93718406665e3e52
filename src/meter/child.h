// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "core/files.h"

namespace joulemark::meter {

/// Takes the signals of this process on a thread of its own from the moment it is made (before other
/// threads, which inherit the mask). While a child runs, signals that somebody sent to this process go on to
/// it, each once; those of the terminal reach it directly, being of the same process group, and are
/// ignored here. A stop (Ctrl-Z) stops this process along with the child.
class SignalRelay {
  public:
    SignalRelay();
    /// Does not give the signals back: one that comes when the command has ended must not end this process
    /// with another status than the command's. One relay per process, therefore.
    ~SignalRelay();
    SignalRelay(const SignalRelay&) = delete;
    SignalRelay& operator=(const SignalRelay&) = delete;

    /// Stopped by a signal that asks this process to end while no child runs.
    std::stop_token interrupted() const { return interrupted_.get_token(); }
    int interrupting_signal() const { return interrupting_signal_; }
    /// Whether any signal asked the child to end that came here, too.
    bool child_asked_to_end() const { return child_asked_to_end_; }

    /// The child that signals go to.
    void attach(pid_t child);
    void detach();
    /// Called on the relay's thread when the terminal's size changes.
    void on_resize(std::function<void()> resized);

    /// What a child's signal mask and default dispositions should be: those this process came with.
    const sigset_t& original_mask() const { return original_mask_; }
    const sigset_t& to_default() const { return to_default_; }

  private:
    void loop();
    void handle(int signal, bool from_terminal);

    sigset_t original_mask_{}, to_default_{};
    files::Descriptor signals_, wake_;
    std::stop_source interrupted_;
    std::atomic<int> interrupting_signal_{0};
    std::atomic<bool> child_asked_to_end_{false};
    std::mutex mutex_;  ///< guards child_ and resized_: no signal may go to a pid that was reaped
    pid_t child_ = -1;
    std::function<void()> resized_;
    std::thread thread_;
};

/// How a command ended.
struct ChildEnd {
    int exit_status = 0;             ///< 128+n after signal n
    std::optional<int> signal = {};  ///< that ended it
    rusage usage{};                  ///< of the command and those of its descendants that were waited for
};

/// The metered command: standard input, output and error as they are here, unless `outputs` replace the latter
/// two.
class Child {
  public:
    struct Failure {
        int exit_status;  ///< 127 not found, 126 not executable
        std::string sentence;
    };
    /// Starts `command` with `environment` added to this process's. A failure is a value: Result's would lack
    /// the status.
    static std::variant<Child, Failure> start(
        const std::vector<std::string>& command,
        const std::vector<std::pair<std::string, std::string>>& environment, SignalRelay& relay,
        std::optional<std::array<int, 2>> outputs);

    /// Waits for the command, not for its descendants. `ended` is called at once when it has ended.
    template <typename Ended>
    ChildEnd wait(Ended&& ended) {
        wait_until_ended();
        ended();
        return reap();
    }

  private:
    Child(pid_t pid, SignalRelay& relay) : pid_(pid), relay_(&relay) {}
    void wait_until_ended() const;
    ChildEnd reap();
    pid_t pid_;
    SignalRelay* relay_;
};

}  // namespace joulemark::meter
