// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

/// Energy of regions that are about as short as the refresh of the counter that meters them: a difference of
/// two stale readings is then wrong by tens of per cent. docs/methods.md, "Energy of short regions", has the
/// model, the formulas and what they assume.
namespace joulemark::meter {

/// A region longer than this many refreshes is measured well enough by the difference of its counter.
inline constexpr double longest_attributed_refreshes = 50;

/// A new value of a sensor: of an energy counter in joules, of a power reading in watts. The read at
/// `earliest_ns` did not show it yet, the one at `latest_ns` did.
struct Refresh {
    std::int64_t earliest_ns, latest_ns;
    double value;
    bool continues;  ///< false: readings between this value and the one before it were not kept
};

/// Collects the refreshes of a counter out of its readings, near the spans that matter: memory does not grow
/// with the rest of the run.
class RefreshLog {
  public:
    struct Span {
        std::int64_t start_ns, end_ns;
    };
    /// `spans` in order of their start.
    explicit RefreshLog(std::vector<Span> spans);

    /// In order of time: a read that began at `time_ns` and took `read_ns`, inside which its value was true.
    void add(std::int64_t time_ns, double energy_j, std::int64_t read_ns = 0);

    const std::vector<Refresh>& refreshes() const { return refreshes_; }
    /// Whether most readings repeated the one before: only then the instants of refreshes are known.
    bool resolved() const { return readings_ >= 3 * (refreshes_.size() + 1); }

  private:
    std::vector<Span> spans_;
    std::size_t span_ = 0;
    std::vector<Refresh> refreshes_;
    std::int64_t last_ns_ = 0;
    double last_j_ = 0;
    std::size_t readings_ = 0;
    bool started_ = false, broken_ = true;
};

/// What is known of a sensor in time, by calibration; the rest is fitted. Its value at a refresh is the
/// energy up to `lag_s` before, averaged over the last `window_s` before that.
struct SensorTiming {
    std::optional<double> refresh_s, lag_s, window_s;
};

/// A region in time. Equal names are repeats of one another.
struct RegionSpan {
    std::string name;
    std::int64_t start_ns, end_ns;
};

struct AttributedEnergy {
    double energy_j;
    double bound_j;  ///< of a 95 % interval, energy_j +- bound_j
};

/// Regions of one name and of like duration, pooled.
struct RegionKind {
    std::string name;
    std::size_t n = 0;  ///< regions
    double mean_duration_s = 0;
    AttributedEnergy mean = {};  ///< energy of one region
};

struct Attribution {
    std::vector<std::optional<AttributedEnergy>> regions;  ///< as they were given; absent: not spanned
    std::vector<RegionKind> kinds;
    double refresh_s = 0, lag_s = 0, window_s = 0;
    bool calibrated = false;             ///< lag and window were given, not fitted
    std::optional<double> idle_power_w;  ///< outside all regions
};

/// Splits the counter's increments among the regions that they fall into. Regions may nest and overlap.
/// A failure says what would be needed.
Result<Attribution> attribute(std::span<const RegionSpan> regions, std::span<const Refresh> refreshes,
                              const SensorTiming& timing);

}  // namespace joulemark::meter
