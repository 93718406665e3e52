// SPDX-License-Identifier: Apache-2.0
#include "core/shell.h"

#include <algorithm>
#include <cctype>

namespace joulemark {

std::string shell_word(std::string_view word) {
    const auto is_safe = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("_./-+,:=@%").find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::ranges::all_of(word, is_safe)) {
        return std::string(word);
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
    std::string line;
    for (const std::string& word : words) {
        line += (line.empty() ? "" : " ") + shell_word(word);
    }
    return line;
}

}  // namespace joulemark
