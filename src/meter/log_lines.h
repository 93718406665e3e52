// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meter/message.h"

namespace joulemark::meter {

/// Finds messages in the lines a program prints.
class LogReader {
  public:
    virtual ~LogReader() = default;
    /// The option that asked for it, as the user gave it.
    virtual std::string option() const = 0;
    /// Appends what begins with the command.
    virtual void start(std::vector<Message>& /*messages*/) {}
    /// Appends what one line (without its end) says.
    virtual void read(std::string_view line, std::vector<Message>& messages) = 0;
    /// Appends the ends of what is open when the output ends.
    virtual void finish(std::vector<Message>& /*messages*/) {}
};

/// MLPerf's logging lines, `:::MLLOG {json}` (mlcommons/logging): run, init, epoch, block and eval intervals
/// become regions, train_samples and global_batch_size become configuration, and an eval_accuracy stands on
/// the next end of a region. Lines are taken at the time they arrive: their own time_ms is of another clock.
class MllogReader final : public LogReader {
  public:
    std::string option() const override { return "--mllog"; }
    void read(std::string_view line, std::vector<Message>& messages) override;

  private:
    std::optional<double> train_samples_;
    std::optional<double> accuracy_;
};

/// Epochs from any line that a regular expression (ECMAScript) matches: a match ends the epoch before and
/// begins the next one. A group (?<epoch>...), else the first group without a name that matches a whole number,
/// numbers the epoch: lines that repeat the number of the one before are of the same epoch. What groups (?<loss>...)
/// and (?<samples>...) match belongs to the epoch that the line ends, or is the last one to repeat.
class EpochRegexReader final : public LogReader {
  public:
    /// Where in its epoch a line is printed. Of those at ends, the first ends an epoch that began with the command,
    /// and what follows the last is none.
    enum class Line : std::uint8_t { at_begin, at_end };

    /// Throws bad_input for a pattern that is none.
    explicit EpochRegexReader(const std::string& pattern, Line line = Line::at_begin);
    std::string option() const override;
    void start(std::vector<Message>& messages) override;
    void read(std::string_view line, std::vector<Message>& messages) override;
    void finish(std::vector<Message>& messages) override;

  private:
    struct Values {
        std::optional<double> loss, samples;
    };
    std::optional<std::int64_t> epoch_of(const std::cmatch& match) const;
    void begin(std::vector<Message>& messages);
    void end(const Values& values, std::vector<Message>& messages);

    std::string pattern_;
    Line line_;
    std::regex regex_;
    std::optional<std::size_t> loss_group_, samples_group_;
    std::vector<std::size_t> epoch_groups_;  ///< that may number the epoch
    std::optional<std::int64_t> epoch_;      ///< of the last match
    Values repeated_;                        ///< told by lines that repeat its number
    bool open_ = false;
};

/// Cuts a stream into lines. A line longer than `max_line_bytes` is skipped, so that output without line ends
/// costs no memory.
class LineCutter {
  public:
    static constexpr std::size_t max_line_bytes = 16 << 10;

    template <typename Take>
    void feed(std::string_view bytes, Take&& take) {
        while (!bytes.empty()) {
            const std::size_t end = bytes.find_first_of("\r\n");  // '\r': progress bars end lines with it
            const std::string_view part = bytes.substr(0, end);
            if (!skipping_ && line_.size() + part.size() <= max_line_bytes) {
                line_ += part;
            } else {
                skipping_ = true;
            }
            if (end == std::string_view::npos) {
                return;
            }
            if (!skipping_ && !line_.empty()) {
                take(std::string_view(line_));
            }
            line_.clear();
            skipping_ = false;
            bytes.remove_prefix(end + 1);
        }
    }

    /// What is left when the stream has ended is a line too.
    template <typename Take>
    void finish(Take&& take) {
        feed("\n", std::forward<Take>(take));
    }

  private:
    std::string line_;
    bool skipping_ = false;
};

}  // namespace joulemark::meter
