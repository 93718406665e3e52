// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace joulemark {

/// Arithmetic of sampled series over windows of time, in one pass over the samples and with memory for the
/// windows' edges only. Windows may overlap and nest freely: they are cut into the slots between edges.

/// The distinct edges of a set of windows, in order. Slot 2k+1 is the instant of edge k, slot 2k the open
/// span before it, and the last slot all time after the last edge.
class Edges {
  public:
    explicit Edges(std::vector<std::int64_t> times);

    std::size_t count() const { return times_.size(); }
    std::int64_t operator[](std::size_t edge) const { return times_[edge]; }
    std::size_t slot_count() const { return 2 * times_.size() + 1; }
    /// The number of the edge at `time`, which must be one.
    std::size_t at(std::int64_t time) const;
    bool has(std::int64_t time) const;

  private:
    std::vector<std::int64_t> times_;
};

/// What a gauge came to over one window.
struct GaugeTotals {
    double integral = 0;          ///< unit x seconds, over the covered time only
    std::int64_t covered_ns = 0;  ///< time between samples that are no gap apart
    std::int64_t unseen_ns = 0;   ///< of this what lies further from a sample than one sample shows
    std::int64_t samples = 0;     ///< inside the window, its two edges included
    double sum = 0;               ///< of these samples: for the plain mean of the protocol
    double minimum = std::numeric_limits<double>::infinity();
    double maximum = -std::numeric_limits<double>::infinity();

    /// Time-weighted; NaN when nothing is covered.
    double mean() const;
    void add(const GaugeTotals& other);
};

/// How a gauge behaves between two samples: straight lines (the trapezoid rule), or steps.
enum class Between : std::uint8_t { linear, hold };

/// Time-weighted totals of one gauge. Time on either side of a gap (a NaN sample, or two samples more than
/// `max_gap_ns` apart) is not covered, and neither is time before the first or after the last sample.
class GaugeSeries {
  public:
    /// `edges` must outlive the series. Of the time between two samples they show `shown_ns`.
    GaugeSeries(const Edges& edges, std::int64_t max_gap_ns, Between between = Between::linear,
                std::int64_t shown_ns = std::numeric_limits<std::int64_t>::max());

    /// Samples in order of time. One that is not later than the last is ignored: false if it is earlier (a second
    /// sample of one instant is common where an edge meets a tick).
    bool add(std::int64_t time_ns, double value);
    /// Both must be edges.
    GaugeTotals over(std::int64_t start_ns, std::int64_t end_ns) const;
    /// The largest sample of all; NaN when there was none.
    double maximum() const { return maximum_; }

  private:
    void integrate(std::int64_t from, double from_value, std::int64_t to, double to_value);

    const Edges& edges_;
    std::int64_t max_gap_ns_;
    Between between_;
    std::int64_t shown_ns_;
    std::vector<GaugeTotals> slots_;
    std::size_t slot_ = 0;  ///< of the last sample
    bool any_ = false;
    std::int64_t last_time_ = 0;
    double last_value_ = std::numeric_limits<double>::quiet_NaN();
    double maximum_ = std::numeric_limits<double>::quiet_NaN();
};

/// What a counter came to over one window.
struct CounterTotals {
    double difference = 0;        ///< between the counter's values at the edges, interpolated linearly
    std::int64_t covered_ns = 0;  ///< the part of the window between the first and the last sample
    std::int64_t samples = 0;     ///< inside the window, its two edges included
    std::int64_t resets = 0;      ///< times it went backwards: the difference is then only a lower bound
    std::int64_t reset_ns = 0;    ///< between the samples around each: what was counted then is lost
    std::int64_t still_ns = 0;    ///< in stretches of one value, of `standstill_ns` or more, that have ended
    /// How long the counter had shown its value at each edge.
    std::int64_t start_age_ns = 0, end_age_ns = 0;
    /// From each edge to the sample nearest to it: how far interpolation had to reach.
    std::int64_t start_distance_ns = 0, end_distance_ns = 0;
};

/// Differences of one accumulating counter. A failed read (NaN) costs nothing: the counter bridges it.
class CounterSeries {
  public:
    /// `edges` must outlive the series.
    explicit CounterSeries(const Edges& edges) : edges_(edges) {}

    /// Samples in order of time. One that is not later than the last is ignored: false if it is earlier (a second
    /// sample of one instant is common where an edge meets a tick).
    bool add(std::int64_t time_ns, double value);
    /// Both must be edges. All zero when there was no sample at all.
    CounterTotals over(std::int64_t start_ns, std::int64_t end_ns) const;
    /// How often it went backwards so far.
    std::int64_t resets() const { return resets_; }

    /// A counter that shows one value for so long stands still: sensors refresh once a second or faster.
    static constexpr std::int64_t standstill_ns = 2'000'000'000;

  private:
    struct AtEdge {
        double value;
        std::int64_t distance_ns;
        std::int64_t covered_until_ns;  ///< the edge, moved into the sampled time
        /// As the start, and as the end of a window.
        std::int64_t resets_before, resets_through, reset_ns_before, reset_ns_through;
        std::int64_t samples_before, samples_through;
        std::int64_t still_ns, age_ns;
    };
    AtEdge edge(std::size_t number) const;

    const Edges& edges_;
    std::vector<AtEdge> passed_;  ///< edges no later than the last sample
    std::int64_t samples_ = 0, resets_ = 0, reset_ns_ = 0, still_ns_ = 0;
    std::int64_t last_time_ = 0;
    std::int64_t changed_ns_ = 0;  ///< when the last value was first seen
    double last_raw_ = 0;
    double last_value_ = 0;  ///< with resets undone
};

}  // namespace joulemark
