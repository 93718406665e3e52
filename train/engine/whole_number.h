// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace joulemark::train {

/// A whole number of a JSON document. The library's own conversions make one of 1.5, 1e18 and true as well.
inline std::int64_t whole_number(const nlohmann::json& json,
                                 std::int64_t least = std::numeric_limits<std::int64_t>::min()) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<std::uint64_t>() > most) ||
        json.get<std::int64_t>() < least) {
        throw bad_input("{} is not a whole number in range", json.dump());
    }
    return json.get<std::int64_t>();
}

}  // namespace joulemark::train
