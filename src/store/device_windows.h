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
#include "core/standstill.h"
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
///  * a sensor that gave nothing but zero measured nothing, and neither did one while it was stuck;
///  * a gap adds nothing to the integral. Time that was not measured (gaps, time between sparse samples, time
///    in which a sensor stood still) may hide all between no power and the device's limit: so says the bound;
///  * the counter is the best estimate where it moved all through the window and is plausible against the
///    power, else the integral. Where nothing tells which of them is wrong, the bound holds both.
class DeviceWindows {
  public:
    /// Both edges must outlive it; `profile_edges` are of the windows that get a power profile.
    DeviceWindows(const Edges& edges, const Edges& profile_edges, DeviceFacts facts);

    /// One row of a sample file: values[i] belongs to metrics[i], NaN is an empty field. An empty field is a
    /// gap only if its source wrote this row; the sources of a device take turns. A row without any value is
    /// a failed read of one of them, whichever: a gap of those whose own row is missing, that is whose
    /// samples before and after are more than a period apart. The read took `read_ns`.
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
    struct Channel {
        std::optional<GaugeSeries> gauge;
        std::optional<CounterSeries> counter;
        Downsampler bins;
        double period_s;
        std::int64_t max_gap_ns, samples = 0;
        std::int64_t last_ns = 0;              ///< of the last sample
        std::optional<std::int64_t> empty_ns;  ///< of the first row without values after it
        double minimum = 0, maximum = 0;
        std::int64_t anchor_ns = 0;  ///< where the counter's current rate starts
        double anchor = 0;
        Standstill standstill;
    };

    /// False for a value that is not later than the one before: it is left out.
    bool put(sensors::Metric metric, std::int64_t time_ns, double value, std::int64_t read_ns);
    bool plausible_power(double watts) const;
    void profile(sensors::Metric metric, std::int64_t time_ns, double value);
    /// The time in which this sensor of power did not follow its device: it stood still, and either moves
    /// much more often otherwise, or the counter, which moved all the time, says far less.
    const Standstill::Stretch* stuck(const Channel& power, const SourceFacts* source) const;
    /// More than the device drew at any time: its limit, or more if that was seen. 0: nothing is known.
    double most_power_w(const Channel* power) const;
    void add_energy(DeviceMetrics& metrics, const Window& window) const;
    const SourceFacts* source_of(sensors::Metric metric) const;
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
    std::optional<meter::RefreshLog> refreshes_;
    std::int64_t out_of_order_ = 0, implausible_ = 0;
    double implausible_w_ = 0;  ///< the first of them
};

}  // namespace joulemark::store
