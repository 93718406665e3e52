// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace joulemark::train {

/// The product of counts; nothing where 64 bits do not hold it.
inline std::optional<std::int64_t> product(std::initializer_list<std::int64_t> factors) {
    std::int64_t result = 1;
    for (const std::int64_t factor : factors) {
        if (__builtin_mul_overflow(result, factor, &result)) {
            return std::nullopt;
        }
    }
    return result;
}

}  // namespace joulemark::train
