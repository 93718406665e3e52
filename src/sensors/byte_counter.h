// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sensors/file_tree.h"

namespace joulemark::sensors {

/// The sum of counters of bytes, each the n-th number of a file, since the first call of `total`. A counter
/// that falls was reset and goes on from there.
class ByteCounter {
  public:
    void add(OpenFile file, std::size_t field, double bytes_per_unit) {
        parts_.push_back({std::move(file), field, bytes_per_unit, std::nullopt});
    }
    bool empty() const { return parts_.empty(); }

    /// Nothing when any of them cannot be read: a sum without it would be wrong.
    std::optional<double> total() noexcept {
        bool complete = true;
        for (Part& part : parts_) {
            const auto now = read(part);
            if (!now) {
                complete = false;
                continue;
            }
            if (part.last && *now > *part.last) {
                total_ += static_cast<double>(*now - *part.last) * part.bytes_per_unit;
            }
            part.last = now;
        }
        return complete ? std::optional(total_) : std::nullopt;
    }

  private:
    struct Part {
        OpenFile file;
        std::size_t field;
        double bytes_per_unit;
        std::optional<std::uint64_t> last;
    };

    static std::optional<std::uint64_t> read(const Part& part) noexcept {
        std::array<char, 256> buffer;
        const std::string_view text = part.file.read(buffer);
        const char* at = text.data();
        const char* const end = at + text.size();
        std::uint64_t value = 0;
        for (std::size_t i = 0; i <= part.field; ++i) {
            while (at != end && *at == ' ') {
                ++at;
            }
            const auto [next, error] = std::from_chars(at, end, value);
            if (error != std::errc{}) {
                return std::nullopt;
            }
            at = next;
        }
        return value;
    }

    std::vector<Part> parts_;
    double total_ = 0;
};

}  // namespace joulemark::sensors
