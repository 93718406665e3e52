// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace joulemark::train {

/// Random numbers that depend on a key only - seed, epoch, sample - and so not on the thread, the rank or the
/// standard library that draws them. splitmix64 (Steele, Lea, Flood 2014), seeded with the mixed key.
class KeyedRandom {
  public:
    KeyedRandom(std::initializer_list<std::uint64_t> key) {
        for (const std::uint64_t part : key) {
            state_ = mix(state_ ^ mix(part + golden));
        }
    }

    std::uint64_t bits() { return mix(state_ += golden); }
    /// In [0, 1).
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
    double uniform(double low, double high) { return low + (high - low) * uniform(); }
    /// In 0..bound-1, bound > 0; its bias, below 2^-32 for the bounds used here, does not matter.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * bound) >> 64);
    }

  private:
    static constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;
    static constexpr std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    std::uint64_t state_ = 0;
};

/// Stands in a key behind the seed: keeps what is drawn for one purpose apart from what is drawn for another.
enum RandomStream : std::uint64_t {
    pattern_stream = 1,
    noise_stream = 2,
    crop_stream = 3,
    dropout_stream = 16,
    mask_stream = 21,
    text_stream = 22,
    molecule_stream = 31,
    field_stream = 32,
    drift_stream = 33,
    wave_stream = 34,
};

}  // namespace joulemark::train
