// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace joulemark {

/// A word as a POSIX shell takes it back: as it is where that is safe, else in single quotes.
std::string shell_word(std::string_view word);

/// The words of a command, one line to copy into a shell.
std::string shell_line(std::span<const std::string> words);

}  // namespace joulemark
