// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace joulemark {

/// Stretches of equal samples, in constant memory.
class Standstill {
  public:
    struct Stretch {
        std::int64_t start_ns = 0, end_ns = 0, samples = 0;
        double value = 0;
        double duration_s() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
    };

    /// In order of time, and no NaN.
    void add(std::int64_t time_ns, double value);
    const Stretch& longest() const { return longest_; }
    /// Whether the longest is so long that nothing which was measured then is known to have moved.
    bool long_enough() const { return longest_.samples >= least_samples && longest_.duration_s() >= least_s; }
    /// Whether it is long, and no part of how the samples move otherwise: they do so often, and stood still
    /// for much longer than between any two moves.
    bool stuck() const;

    static constexpr std::int64_t least_samples = 100;

  private:
    static constexpr double least_s = 30;

    Stretch current_, longest_;
    double sum_s_ = 0;  ///< of all
    std::int64_t count_ = 0;
};

}  // namespace joulemark
