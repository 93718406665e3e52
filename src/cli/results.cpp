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

void add_footprint_options(CLI::App& app, std::string& carbon, std::optional<double>& price) {
    app.add_option("--carbon", carbon, "gCO2e per kWh: a number, or a CSV file time,g_per_kwh: adds co2e_g");
    app.add_option("--price", price, "Price of a kWh in any currency: adds cost");
}

std::optional<analysis::CarbonIntensity> intensity_of(const std::string& carbon) {
    return carbon.empty() ? std::nullopt : std::optional(analysis::CarbonIntensity::parse(carbon));
}

}  // namespace joulemark::cli
