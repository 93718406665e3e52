// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/files.h"
#include "meter/log_lines.h"

namespace joulemark::meter {

/// Stands between a command and its standard output and standard error: passes every byte on at once and
/// unchanged, and shows the lines to readers. A terminal is replaced by a pseudo-terminal, so that the command
/// colours and buffers as it would without the tap. Where both are one file the command gets one for both: what it
/// writes keeps its order.
class OutputTap {
  public:
    using Take = std::function<void(Message message)>;

    /// Throws environment_error when there is no pipe or pseudo-terminal to be had.
    OutputTap(std::vector<std::unique_ptr<LogReader>> readers, Clock& clock, Take take);
    ~OutputTap();
    OutputTap(const OutputTap&) = delete;
    OutputTap& operator=(const OutputTap&) = delete;

    /// For the command's standard output and standard error.
    std::array<int, 2> command_sides() const;
    /// Whether the command sees that its standard output is no terminal, and may hold lines back.
    bool invites_buffering() const { return !streams_.front()->terminal; }
    /// Once the command has been started.
    void start();
    /// Once the command has ended: passes on what is still there. A descendant that keeps the output open
    /// is not waited for. Of a command that was cut short no region ends with the output.
    void finish(bool cut_short = false);
    /// The terminal's size has changed.
    void copy_window_size() const;

    /// After `finish`: options that no line answered, in words.
    std::vector<std::string> unmatched() const;
    /// After `finish`: why the times of the marks may be wrong, in words.
    std::vector<std::string> doubts() const;

  private:
    struct Stream {
        int target;
        bool terminal;
        files::Descriptor our_side = {}, command_side = {};
        LineCutter cutter = {};
        std::uint64_t passed = 0;  ///< bytes
        std::thread thread = {};
    };
    enum class Passed { some, nothing, closed };

    static std::unique_ptr<Stream> open(int target);
    void loop(Stream& stream);
    Passed pass_some(Stream& stream);
    void read(std::string_view line, std::vector<Message>& messages);
    void doubt(std::vector<Message>& messages);
    void tell(std::vector<Message>& messages);

    std::vector<std::unique_ptr<LogReader>> readers_;
    Clock& clock_;
    Take take_;
    files::Descriptor ended_;
    std::vector<std::unique_ptr<Stream>> streams_;  ///< of standard output, and of standard error if it is another

    std::mutex mutex_;  ///< guards the readers and what follows
    std::vector<bool> matched_;  ///< by reader
    std::uint64_t lines_ = 0;
    std::set<std::string> late_;  ///< regions open since a time that is not known
    std::uint64_t late_regions_ = 0;
    /// Of lines that are taken for the begins of epochs.
    struct Begins {
        std::uint64_t count = 0;
        std::int64_t first_ns = 0, last_ns = 0;
    } begins_;
    std::int64_t start_ns_ = 0, end_ns_ = 0;
};

}  // namespace joulemark::meter
