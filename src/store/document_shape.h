// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace joulemark::store {

/// The kinds of those members of run.json and end.json that anybody reads (docs/schema.md).
const nlohmann::json& run_shape();
const nlohmann::json& end_shape();

/// Takes every member out of `document` that is not of the kind that `shape` says, and returns their paths
/// ("sources[2].metrics"), so that readers find a member of its kind or none. Members that the shape does not
/// name stay. A null is no damage: it stays in the place of a plain value, and goes in that of an object or
/// array.
std::vector<std::string> keep_to_shape(nlohmann::json& document, const nlohmann::json& shape);

}  // namespace joulemark::store
