// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

namespace joulemark {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace joulemark
