// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// Reading run files that may lack any key, or hold null for it, without copying.
namespace joulemark::analysis {

/// The member, or a null value, over which a loop has no iterations.
inline const nlohmann::json& child(const nlohmann::json& object, const char* key) {
    static const nlohmann::json null;
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
}

/// The member's text; "" when it is absent or not text.
inline std::string text(const nlohmann::json& object, const char* key) {
    const nlohmann::json& member = child(object, key);
    return member.is_string() ? member.get<std::string>() : "";
}

}  // namespace joulemark::analysis
