// SPDX-License-Identifier: Apache-2.0
#include "study/progress.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/streams.h"

namespace joulemark::study {
namespace {

bool can_rewrite_lines() {
    const char* terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), is_live_(!quiet && can_rewrite_lines()) {}

void Progress::say(const std::string& line) {
    if (!quiet_) {
        warn(line);
    }
}

void Progress::warn(const std::string& line) {
    clear();
    joulemark::say(line);
}

void Progress::live(const std::string& line) {
    if (is_live_) {
        clear();
        say_text(line.substr(0, terminal_width() - 1));
        shown_ = true;
    }
}

void Progress::clear() {
    if (shown_) {
        say_text("\r\033[K");
        shown_ = false;
    }
}

}  // namespace joulemark::study
