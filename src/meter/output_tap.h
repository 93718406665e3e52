// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/files.h"
#include "meter/log_lines.h"

namespace joulemark::meter {

/// Stands between a command and standard output: passes every byte on at once and unchanged, and shows the
/// lines to readers. Where standard output is a terminal the command gets a pseudo-terminal, so that
/// it colours and buffers as it would without the tap.
class OutputTap {
  public:
    using Take = std::function<void(Message message)>;

    /// Throws environment_error when there is no pipe or pseudo-terminal to be had.
    OutputTap(std::vector<std::unique_ptr<LogReader>> readers, Take take);
    ~OutputTap();
    OutputTap(const OutputTap&) = delete;
    OutputTap& operator=(const OutputTap&) = delete;

    /// For the command's standard output.
    int command_side() const { return command_side_.get(); }
    /// Once the command has been started.
    void start();
    /// Once the command has ended: passes on what is still there. A descendant that keeps the output open
    /// is not waited for.
    void finish();
    /// The terminal's size has changed.
    void copy_window_size() const;

  private:
    void loop();
    enum class Passed { some, nothing, closed };
    Passed pass_some();
    void tell(std::vector<Message>& messages);

    std::vector<std::unique_ptr<LogReader>> readers_;
    Take take_;
    LineCutter cutter_;
    files::Descriptor our_side_, command_side_, ended_;
    bool terminal_ = false;
    std::uint64_t passed_ = 0;  ///< bytes
    std::thread thread_;
};

}  // namespace joulemark::meter
