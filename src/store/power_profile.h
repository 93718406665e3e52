// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/series.h"
#include "store/model.h"

namespace joulemark::store {

/// The shape of one device's power over any number of windows, in one pass (docs/methods.md, "Power
/// profile"). Every sample counts for the time until the next one; a gap counts for nothing.
class PowerProfile {
  public:
    /// `edges` must outlive it.
    PowerProfile(const Edges& edges, std::int64_t max_gap_ns);

    /// Samples in order of time. `limit_w` in force and `busy_pct` of the same instant; NaN where not known.
    void add(std::int64_t time_ns, double watts, double limit_w, double busy_pct);

    /// Nothing where the samples cover no time. Both must be edges.
    std::optional<ProfileMetrics> over(std::int64_t start_ns, std::int64_t end_ns) const;

  private:
    /// From 1 W, each 7 % wider than the one before, to 5.8 kW: percentiles are interpolated within.
    static constexpr std::size_t bins = 128;

    /// Between two neighbouring edges.
    struct Slot {
        std::array<float, bins> seconds{};
        double covered_s = 0, sum = 0, squares = 0;  ///< of watts, weighted by seconds
        double limited_s = 0, limit_known_s = 0, idle_s = 0, busy_known_s = 0;
        std::int64_t rises = 0;  ///< crossings of the running mean, upwards
        void add(const Slot& other);
    };
    struct Sample {
        std::int64_t time_ns;
        double watts, limit_w, busy_pct;
    };
    void hold(const Sample& sample, std::int64_t until_ns);

    const Edges& edges_;
    std::int64_t max_gap_ns_;
    std::vector<Slot> slots_;
    std::size_t slot_ = 0;  ///< of the last sample
    std::optional<Sample> last_;
    double running_mean_w_ = std::numeric_limits<double>::quiet_NaN();
    std::int64_t time_of_mean_ns_ = 0;
    bool above_ = false;
};

}  // namespace joulemark::store
