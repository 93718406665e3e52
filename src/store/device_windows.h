// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/series.h"
#include "meter/attribution.h"
#include "sensors/metric.h"
#include "store/downsample.h"
#include "store/model.h"
#include "store/power_profile.h"

namespace joulemark::store {

/// One source of a device, as run.json tells it.
struct SourceFacts {
    std::vector<sensors::Metric> metrics;
    double period_s = 0;         ///< asked for
    double native_period_s = 0;  ///< how long a reading may be stale
    bool estimated = false;
    meter::SensorTiming timing = {};  ///< of its counter, by calibration
};

/// One device, as run.json tells it.
struct DeviceFacts {
    std::string id, component;
    std::optional<double> memory_bytes, power_limit_w;
    bool simulated = false;
    std::vector<SourceFacts> sources;  ///< in the order in which they are read
    double period_s = 0;  ///< of metrics that no source claims
};

/// A window's place among the edges, and the time it really spans: an open region's edge lies beyond all
/// samples, while it counts up to the last one.
struct Window {
    std::int64_t start_edge = 0, end_edge = 0;
    std::int64_t start_ns = 0, end_ns = 0;
};

/// Turns the samples of one device into metrics of any number of windows and downsampled series, in one
/// pass. Energy:
///  * power is `power_instant_w` where the device has it, else `power_w`, else `power_average_w`;
///  * a power below zero, or beyond what any such device draws, is a gap;
///  * a sensor that gave nothing but zero measured nothing;
///  * a gap adds nothing to the integral; what it may hide is in the bound;
///  * the counter is the best estimate where it spans the window and is plausible against the power.
class DeviceWindows {
  public:
    /// Both edges must outlive it; `profile_edges` are of the windows that get a power profile.
    DeviceWindows(const Edges& edges, const Edges& profile_edges, DeviceFacts facts);

    /// One row of a sample file: values[i] belongs to metrics[i], NaN is an empty field. An empty field is a
    /// gap only if its source wrote this row; the sources of a device take turns. A row without any value is
    /// a failed read of the source whose turn it was. The read took `read_ns`.
    void add(std::int64_t time_ns, std::span<const sensors::Metric> metrics, std::span<const double> values,
             std::int64_t read_ns = 0);

    /// From now on keeps the refreshes of the energy counter near these spans.
    void keep_refreshes(const std::vector<meter::RefreshLog::Span>& spans) { refreshes_.emplace(spans); }
    const meter::RefreshLog* refreshes() const { return refreshes_ ? &*refreshes_ : nullptr; }
    /// What calibration knows of that counter.
    meter::SensorTiming energy_timing() const;
    const std::string& id() const { return facts_.id; }

    DeviceMetrics over(const Window& window) const;
    /// Host and run are left for the caller. A counter appears as the power it implies.
    std::vector<Series> series() const;
    std::vector<Warning> warnings() const;

  private:
    /// Stretches of equal samples.
    struct Standstill {
        struct Stretch {
            std::int64_t start_ns = 0, end_ns = 0, samples = 0;
            double value = 0;
            double duration_s() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
        };
        Stretch current, longest;
        double sum_s = 0;  ///< of all
        std::int64_t count = 0;
        void add(std::int64_t time_ns, double value);
        /// The longest, where it is no part of how this metric moves otherwise.
        bool stuck() const;
    };
    struct Channel {
        std::optional<GaugeSeries> gauge;
        std::optional<CounterSeries> counter;
        Downsampler bins;
        std::int64_t max_gap_ns, samples = 0;
        double minimum = 0, maximum = 0;
        std::int64_t anchor_ns = 0;  ///< where the counter's current rate starts
        double anchor = 0;
        Standstill standstill;
    };

    /// False for a value that is not later than the one before: it is left out.
    bool put(sensors::Metric metric, std::int64_t time_ns, double value, std::int64_t read_ns);
    bool plausible_power(double watts) const;
    void profile(sensors::Metric metric, std::int64_t time_ns, double value);
    void add_energy(DeviceMetrics& metrics, const Window& window) const;
    const SourceFacts* source_of(sensors::Metric metric) const;
    const SourceFacts* due_at(std::int64_t time_ns) const;
    const Channel* channel(sensors::Metric metric) const;
    const Channel* first_of(std::span<const sensors::Metric> metrics, sensors::Metric& which) const;
    GaugeTotals gauge(sensors::Metric metric, const Window& window) const;

    const Edges& edges_;
    const Edges& profile_edges_;
    DeviceFacts facts_;
    std::optional<PowerProfile> profile_;
    std::optional<GaugeSeries> power_1hz_;
    std::optional<std::int64_t> last_1hz_ns_;
    double limit_w_, busy_pct_;  ///< last seen; NaN before
    std::size_t power_rank_;     ///< of the power in the profile, among the metrics of power
    std::array<std::unique_ptr<Channel>, sensors::metric_count> channels_;
    std::vector<std::int64_t> written_ns_;  ///< the last row of each source; 0 before
    std::optional<meter::RefreshLog> refreshes_;
    std::int64_t out_of_order_ = 0, implausible_ = 0;
    double implausible_w_ = 0;  ///< the first of them
};

}  // namespace joulemark::store
