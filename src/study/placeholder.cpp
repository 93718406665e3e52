// SPDX-License-Identifier: Apache-2.0
#include "study/placeholder.h"

#include <algorithm>

namespace joulemark::study {
namespace {

bool is_name(std::string_view text) {
    return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
           std::ranges::all_of(
               text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

std::string fill(std::string_view text, const std::function<std::string(const std::string&)>& value) {
    std::string result;
    while (!text.empty()) {
        const std::size_t open = text.find('{');
        if (open == std::string_view::npos) {
            break;
        }
        const std::size_t close = text.find_first_of("{}", open + 1);
        const bool is_placeholder = close != std::string_view::npos && text[close] == '}' &&
                                    is_name(text.substr(open + 1, close - open - 1));
        if (is_placeholder) {
            result += text.substr(0, open);
            result += value(std::string(text.substr(open + 1, close - open - 1)));
            text.remove_prefix(close + 1);
        } else {
            result += text.substr(0, open + 1);
            text.remove_prefix(open + 1);
        }
    }
    result += text;
    return result;
}

std::vector<std::string> placeholders(std::string_view text) {
    std::vector<std::string> names;
    fill(text, [&](const std::string& name) {
        names.push_back(name);
        return std::string();
    });
    return names;
}

}  // namespace joulemark::study
