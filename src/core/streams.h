// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace joulemark {

/// Before anything else is opened: standard streams that are closed become /dev/null, lest a file take their
/// number and messages go into it. Programs started from here still find them closed.
void open_standard_streams();

/// A line on standard error. Whatever becomes of it (a full disk, a reader that went away), the work goes on.
void say(std::string_view line) noexcept;

/// The same without an end of line: for what is overwritten later, and for a text of several lines.
void say_text(std::string_view text) noexcept;

}  // namespace joulemark
