// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::study {

/// The names in braces in a text: "{local_batch}". Only lower-case letters, digits and underscores make a
/// placeholder, so that braces of JSON or of a shell stay as they are.
std::vector<std::string> placeholders(std::string_view text);

/// The text with each placeholder replaced by `value(name)`.
std::string fill(std::string_view text, const std::function<std::string(const std::string&)>& value);

}  // namespace joulemark::study
