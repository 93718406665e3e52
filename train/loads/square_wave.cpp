// SPDX-License-Identifier: Apache-2.0
#include "loads/square_wave.h"

#include <algorithm>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/error.h"
#include "engine/option_checks.h"
#include "engine/streams.h"

namespace joulemark::train {

std::optional<SquareWave> parse_square_wave(std::vector<std::string> words) {
    SquareWave wave;
    CLI::App app(
        "Loads the GPUs, or the CPU, in bursts of matrix products with idle time between, each burst marked "
        "as a region: a load for calibrating sensors, not a model.",
        "joulemark-train square-wave");
    app.footer(
        "Examples:\n  joulemark doctor --calibrate\n"
        "  joulemark doctor --calibrate -- joulemark-train square-wave --high-s 0.3 --low-s 0.7 --repeats "
        "100");
    app.add_option("--high-s", wave.high_s, "seconds of a burst, on average; default 0.45")
        ->check(number(0.01, 60));
    app.add_option("--low-s", wave.low_s, "seconds of idle time after it, on average; default 0.55")
        ->check(number(0.01, 60));
    app.add_option("--vary", wave.vary, "each by up to this share, at random; default 0.4")
        ->check(number(0, 0.9));
    app.add_option("--repeats", wave.repeats, "bursts; default 60")->check(CLI::Range(1, 1'000'000));
    app.add_option("--size", wave.size, "rows of the square matrices; default 8192 on a GPU, 1024 on the CPU")
        ->check(CLI::Range(std::int64_t{16}, std::int64_t{65'536}));
    app.add_option("--seed", wave.seed, "seed of the durations")->check(seed());
    choice(app, "--device", wave.device, devices, "default: cuda when there is one");
    std::reverse(words.begin(), words.end());
    try {
        app.parse(words);
    } catch (const CLI::CallForHelp&) {
        print(app.help());
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-train square-wave --help", error.what());
    }
    return wave;
}

std::vector<Burst> bursts(const SquareWave& wave) {
    // Not std::uniform_real_distribution, whose numbers differ between standard libraries.
    std::mt19937_64 random(wave.seed);
    const auto varied = [&](double mean_s) {
        const double unit = static_cast<double>(random() >> 11) * 0x1p-53;  // 0 to below 1
        return mean_s * (1 + wave.vary * (2 * unit - 1));
    };
    std::vector<Burst> all;
    for (int i = 0; i < wave.repeats; ++i) {
        const double high_s = varied(wave.high_s);
        all.push_back({high_s, varied(wave.low_s)});
    }
    return all;
}

}  // namespace joulemark::train
