// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/options.h"

namespace joulemark::train {

/// A load that is no model: dense matrix products in bursts with idle time between, each burst marked as a
/// region `square`. `joulemark doctor --calibrate` asks by it when sensors show what they measure.
struct SquareWave {
    double high_s = 0.45, low_s = 0.55;  ///< of a burst, and of the idle time after it, on average
    double vary = 0.4;                   ///< each by up to this share, at random
    int repeats = 60;
    std::int64_t size = 0;  ///< of the square matrices; 0: as the device needs
    DeviceChoice device = DeviceChoice::automatic;
    std::uint64_t seed = 1;
};

/// Options of `joulemark-train square-wave`, or nothing when help was asked for, and printed. Throws
/// bad_input.
std::optional<SquareWave> parse_square_wave(std::vector<std::string> words);

/// A burst and the idle time after it.
struct Burst {
    double high_s, low_s;
};

/// Uneven, so that no sensor's refresh keeps step with them, and so that lag and window of a sensor, which
/// one duration would not tell apart, both show. The same options give the same bursts on every machine.
std::vector<Burst> bursts(const SquareWave& wave);

/// Runs the bursts on every GPU that is visible, or on the CPU. Throws environment_error where the device
/// that was asked for is missing.
void run_square_wave(const SquareWave& wave);

}  // namespace joulemark::train
