// SPDX-License-Identifier: Apache-2.0
#include "cli/results.h"
#include "core/streams.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace joulemark::cli {

store::Merged open_results(const std::filesystem::path& dir, bool quiet) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    bool shown = false;
    auto last = begin;
    store::MergeOptions options;
    if (!quiet && isatty(STDERR_FILENO) != 0) {
        options.progress = [&](std::size_t done, std::size_t total) {
            const auto now = clock::now();
            if (now - begin < std::chrono::seconds(1) ||
                (shown && now - last < std::chrono::milliseconds(200))) {
                return;
            }
            last = now;
            shown = true;
            say_text(fmt::format("\rreading the run files of {} of {} hosts", done, total));
        };
    }
    store::Merged merged = store::merge(dir, options);
    if (shown) {
        say_text("\r\033[K");
    }
    if (!quiet) {
        for (const std::string& note : merged.notes) {
            say(fmt::format("note: {}", note));
        }
    }
    return merged;
}

}  // namespace joulemark::cli
