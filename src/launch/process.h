// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include <sys/types.h>

#include "launch/launcher.h"

namespace joulemark::launch {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD are not delivered but waited for; what was pending is
/// discarded at the end. Processes started meanwhile have the signals as they were before.
class SignalGate {
  public:
    SignalGate();
    ~SignalGate();
    SignalGate(const SignalGate&) = delete;
    SignalGate& operator=(const SignalGate&) = delete;

    /// The next signal, or nothing after `timeout`.
    std::optional<siginfo_t> wait(std::chrono::milliseconds timeout) const;
    const sigset_t& previous() const { return previous_; }

  private:
    sigset_t gate_;
    sigset_t previous_;
};

/// A child in this process's group, so that the terminal's signals reach it directly. It is sent SIGTERM
/// should this program die. Its input is empty; output and errors go to a file.
class Process {
  public:
    /// Throws environment_error when the log cannot be written or no process can be made. A command that
    /// cannot be executed shows as exit status 127 (not found) or 126, with a line in the log.
    Process(const Invocation& invocation, const std::filesystem::path& log, const SignalGate& gate);
    /// Kills and reaps a child that still runs.
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    /// Its exit status (128+n after signal n) once it has ended.
    std::optional<int> status();
    void send(int signal) const;

  private:
    pid_t pid_ = -1;
    std::optional<int> status_;
};

}  // namespace joulemark::launch
