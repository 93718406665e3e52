// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace joulemark::train {

/// FNV-1a: tells data sets apart, alike on every machine.
class Digest {
  public:
    Digest& add(std::string_view text) {
        for (const char byte : text) {
            hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
        }
        return add(text.size());
    }
    Digest& add(std::integral auto number) {
        hash_ = (hash_ ^ static_cast<std::uint64_t>(number)) * 0x100000001b3U;
        return *this;
    }
    std::string text() const { return fmt::format("{:016x}", hash_); }

  private:
    std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace joulemark::train
