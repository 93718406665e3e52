// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace joulemark::store {

/// Minimum, mean and maximum of a series in at most `limit` bins of equal width, without knowing in advance
/// how long it will be: when the bins run out, neighbours merge and the width doubles.
class Downsampler {
  public:
    static constexpr std::size_t limit = 1024;

    struct Bin {
        double minimum = 0, maximum = 0, sum = 0;
        std::int64_t samples = 0;  ///< 0: an empty bin
    };

    /// `width_ns` is the first width: about one sample's.
    explicit Downsampler(std::int64_t width_ns) : width_ns_(width_ns > 0 ? width_ns : 1) {}

    /// Samples in order of time. NaN is ignored.
    void add(std::int64_t time_ns, double value);

    std::int64_t start_ns() const { return start_ns_; }
    std::int64_t width_ns() const { return width_ns_; }
    const std::vector<Bin>& bins() const { return bins_; }

  private:
    void halve();
    std::int64_t width_ns_;
    std::int64_t start_ns_ = 0;
    std::vector<Bin> bins_;
};

}  // namespace joulemark::store
