// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace joulemark::meter {

/// What a program tells the meter: docs/schema.md, "Marking protocol".
struct Message {
    enum class Event : std::uint8_t { begin, end, abort, config, note, lost };
    Event event = Event::note;
    std::string name;
    std::optional<std::int64_t> index;
    std::optional<std::int64_t> time_ns;  ///< CLOCK_MONOTONIC of the sender
    int rank = 0;
    std::optional<double> samples, updates, tokens, loss;
    std::string quality_name, quality_direction;
    std::optional<double> quality;
    std::string source;  ///< socket | mllog | regex | meter
    std::string data;    ///< a JSON object as text, or ""
    std::uint64_t count = 0;  ///< of `lost`: messages of this sender that did not get through

    bool edge() const { return event == Event::begin || event == Event::end || event == Event::abort; }
};

/// Longest message that is taken.
inline constexpr std::size_t max_message_bytes = 64 << 10;

/// One datagram. Never throws: the failure says what is wrong with it. Unknown keys are ignored.
Result<Message> parse_message(std::string_view json);

/// The message as a datagram, for a meter that forwards to another one.
std::string to_json(const Message& message);

/// One line of regions.csv, line end included.
std::string to_csv(const Message& message, std::int64_t time_ns);

/// Leaves out counts of samples, updates and tokens that are negative; gives how many.
int drop_negative_counts(Message& message);

/// Gives messages without an index theirs: a count per name and rank. An end or abort belongs to the last begin
/// that has none yet, so that regions of one name nest.
class MessageIndex {
  public:
    std::int64_t of(const Message& message);

    /// Regions that a rank gave an index which it had given another one of that name.
    std::uint64_t repeated() const { return repeated_; }

  private:
    /// Whole numbers kept as spans, so that a million that count up cost nothing.
    class Numbers {
      public:
        /// Whether it is new.
        bool insert(std::int64_t number);

      private:
        std::map<std::int64_t, std::int64_t> spans_;  ///< the first number, and the first one after
    };
    struct Count {
        std::int64_t next = 0;
        std::vector<std::int64_t> open;
        Numbers used;
    };
    std::map<std::pair<std::string, int>, Count> counts_;
    std::uint64_t repeated_ = 0;
};

}  // namespace joulemark::meter
