// SPDX-License-Identifier: Apache-2.0
#include "store/device_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/energy.h"
#include "core/units.h"

namespace joulemark::store {
namespace {

using sensors::Behaviour;
using enum sensors::Metric;
using sensors::Metric;

/// A counter's rate is taken over at least this long: most sensors refresh ten times a second.
constexpr std::int64_t rate_span_ns = ns_per_s;
/// A source whose samples are this many periods apart has a row missing between them.
constexpr double missing_row = 1.5;
/// No reading of a working sensor is so far above its device's limit, or above all devices there are.
constexpr double most_over_limit = 4, most_device_w = 100e3, most_node_w = 10e6;
/// Software power cap, hardware slow-down, thermal slow-down by software and hardware, power brake: the
/// bits of nvmlClocksEventReasons that stand for a limit of power or heat.
constexpr std::uint64_t throttle_bits = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;

/// The best first.
constexpr std::array power_metrics{gpu_power_instant_w, gpu_power_w, gpu_power_average_w, cpu_power_w,
                                   node_power_w};
constexpr std::array energy_metrics{gpu_energy_j, cpu_energy_j, node_energy_j};

std::optional<double> present(double value) {
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Time-weighted; a window too short for two samples takes the samples it has.
std::optional<double> mean(const GaugeTotals& totals) {
    if (totals.covered_ns > 0) {
        return totals.mean();
    }
    return totals.samples > 0 ? present(totals.sum / static_cast<double>(totals.samples)) : std::nullopt;
}

std::optional<double> share_pct(std::optional<double> part, std::optional<double> whole) {
    return part && whole && *whole > 0 ? std::optional(100 * *part / *whole) : std::nullopt;
}

/// How much time one sample tells of: a refresh of its sensor, which comes once a second or faster. An
/// estimate is made from all the time since the one before.
std::int64_t shown_ns(const SourceFacts* source) {
    if (source != nullptr && source->estimated) {
        return std::numeric_limits<std::int64_t>::max();
    }
    const bool known = source != nullptr && source->native_period_s > 0;
    return known ? std::min(nanoseconds(source->native_period_s), ns_per_s) : ns_per_s;
}

}  // namespace

DeviceWindows::DeviceWindows(const Edges& edges, const Edges& profile_edges, DeviceFacts facts)
    : edges_(edges),
      profile_edges_(profile_edges),
      facts_(std::move(facts)),
      limit_w_(facts_.power_limit_w.value_or(nan)),
      busy_pct_(nan),
      power_rank_(power_metrics.size()) {}

const Standstill::Stretch* DeviceWindows::stuck(const Channel& power, const SourceFacts* source) const {
    const Standstill::Stretch& stretch = power.standstill.longest();
    if ((source != nullptr && source->estimated) || !power.standstill.long_enough()) {
        return nullptr;
    }
    if (power.standstill.stuck()) {
        return &stretch;
    }
    Metric metric{};
    const Channel* counter = first_of(energy_metrics, metric);
    if (counter == nullptr ||
        counter->standstill.longest().duration_s() >= seconds(CounterSeries::standstill_ns)) {
        return nullptr;
    }
    // The power that the counter implies meanwhile. (It may well be higher: a module's counter.)
    Downsampler::Bin counted;
    const auto& bins = counter->bins.bins();
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        const std::int64_t from =
            counter->bins.start_ns() + static_cast<std::int64_t>(bin) * counter->bins.width_ns();
        if (from >= stretch.start_ns && from + counter->bins.width_ns() <= stretch.end_ns) {
            counted.sum += bins[bin].sum;
            counted.samples += bins[bin].samples;
        }
    }
    const double counted_w = counted.sum / static_cast<double>(counted.samples);
    return counted_w < stretch.value / 3 ? &stretch : nullptr;
}

double DeviceWindows::most_power_w(const Channel* power) const {
    const Channel* limit = channel(gpu_power_limit_w);
    return std::max({facts_.power_limit_w.value_or(0), limit != nullptr ? limit->maximum : 0,
                     power != nullptr ? power->maximum : 0});
}

/// Feeds the profile from the best power there is; a failed read is a gap in it too.
void DeviceWindows::profile(Metric metric, std::int64_t time_ns, double value) {
    if (metric == gpu_power_limit_w && !std::isnan(value)) {
        limit_w_ = value;
    } else if (metric == gpu_busy_pct) {
        busy_pct_ = value;
    }
    const auto rank =
        static_cast<std::size_t>(std::ranges::find(power_metrics, metric) - power_metrics.begin());
    if (rank < power_rank_ && !std::isnan(value)) {  // the first row may name a better one after a worse
        power_rank_ = rank;
        const SourceFacts* source = source_of(metric);
        const std::int64_t gap = max_gap_ns(source != nullptr ? source->period_s : facts_.period_s);
        profile_.emplace(profile_edges_, gap);
        power_1hz_.emplace(edges_, gap);
        last_1hz_ns_.reset();
    }
    if (rank != power_rank_ || rank == power_metrics.size()) {
        return;
    }
    profile_->add(time_ns, value, limit_w_, busy_pct_);
    if (std::isnan(value) || !last_1hz_ns_ || time_ns - *last_1hz_ns_ >= ns_per_s) {
        power_1hz_->add(time_ns, value);
        last_1hz_ns_ = time_ns;
    }
}

const SourceFacts* DeviceWindows::source_of(Metric metric) const {
    const auto found = std::ranges::find_if(facts_.sources, [&](const SourceFacts& source) {
        return std::ranges::count(source.metrics, metric) > 0;
    });
    return found == facts_.sources.end() ? nullptr : &*found;
}

const DeviceWindows::Channel* DeviceWindows::channel(Metric metric) const {
    return channels_[static_cast<std::size_t>(metric)].get();
}

const DeviceWindows::Channel* DeviceWindows::first_of(std::span<const Metric> metrics, Metric& which) const {
    for (const Metric metric : metrics) {
        if (const Channel* found = channel(metric); found != nullptr) {
            which = metric;
            return found;
        }
    }
    return nullptr;
}

bool DeviceWindows::plausible_power(double watts) const {
    const double most = facts_.power_limit_w && *facts_.power_limit_w > 0
                            ? most_over_limit * *facts_.power_limit_w
                        : facts_.component == "node" ? most_node_w
                                                     : most_device_w;
    return watts >= 0 && watts <= most;
}

bool DeviceWindows::put(Metric metric, std::int64_t time_ns, double value, std::int64_t read_ns) {
    if (std::ranges::count(power_metrics, metric) > 0 && !std::isnan(value) && !plausible_power(value)) {
        if (implausible_++ == 0) {
            implausible_w_ = value;
        }
        value = nan;
    }
    auto& slot = channels_[static_cast<std::size_t>(metric)];
    if (slot && slot->empty_ns && *slot->empty_ns <= time_ns) {
        const std::int64_t empty_ns = *std::exchange(slot->empty_ns, std::nullopt);
        if (empty_ns < time_ns && seconds(time_ns - slot->last_ns) > missing_row * slot->period_s) {
            put(metric, empty_ns, nan, read_ns);
        }
    }
    profile(metric, time_ns, value);
    const Behaviour behaviour = sensors::info(metric).behaviour;
    if (!slot) {
        if (std::isnan(value)) {
            return true;  // before the first sample nothing is covered anyway
        }
        const SourceFacts* source = source_of(metric);
        const double period_s = source != nullptr ? source->period_s : facts_.period_s;
        slot = std::make_unique<Channel>(
            Channel{.gauge = {},
                    .counter = {},
                    .bins = Downsampler(std::max(nanoseconds(period_s), ns_per_s / 1000)),
                    .period_s = period_s,
                    .max_gap_ns = max_gap_ns(period_s),
                    .empty_ns = {},
                    .minimum = value,
                    .maximum = value,
                    .anchor_ns = time_ns,
                    .anchor = value,
                    .standstill = {}});
        if (behaviour == Behaviour::counter) {
            slot->counter.emplace(edges_);
        } else {
            slot->gauge.emplace(edges_, slot->max_gap_ns,
                                behaviour == Behaviour::flags ? Between::hold : Between::linear,
                                shown_ns(source));
        }
    }
    if (behaviour == Behaviour::flags && !std::isnan(value)) {
        value = (static_cast<std::uint64_t>(std::max(value, 0.0)) & throttle_bits) != 0 ? 100 : 0;
    }
    if (!(slot->counter ? slot->counter->add(time_ns, value) : slot->gauge->add(time_ns, value))) {
        return false;
    }
    slot->last_ns = time_ns;
    if (std::isnan(value)) {
        return true;
    }
    if (refreshes_ && std::ranges::count(energy_metrics, metric) > 0) {
        refreshes_->add(time_ns, value, read_ns);
    }
    ++slot->samples;
    slot->minimum = std::min(slot->minimum, value);
    slot->maximum = std::max(slot->maximum, value);
    slot->standstill.add(time_ns, value);
    if (!slot->counter) {
        slot->bins.add(time_ns, value);
    } else if (time_ns - slot->anchor_ns >= rate_span_ns || value < slot->anchor) {
        if (value >= slot->anchor) {
            slot->bins.add(slot->anchor_ns, (value - slot->anchor) / seconds(time_ns - slot->anchor_ns));
        }
        slot->anchor_ns = time_ns;
        slot->anchor = value;
    }
    return true;
}

void DeviceWindows::add(std::int64_t time_ns, std::span<const Metric> metrics, std::span<const double> values,
                        std::int64_t read_ns) {
    std::array<bool, sensors::metric_count> filled{};
    bool in_order = true;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        if (!std::isnan(values[i])) {
            in_order &= put(metrics[i], time_ns, values[i], read_ns);
            filled[static_cast<std::size_t>(metrics[i])] = true;
        }
    }
    const auto is_filled = [&](Metric metric) { return filled[static_cast<std::size_t>(metric)]; };
    const auto wrote = [&](const SourceFacts& source) {
        return std::ranges::any_of(source.metrics, is_filled);
    };
    if (std::ranges::count(filled, true) == 0) {
        for (const auto& slot : channels_) {
            if (slot && time_ns > slot->last_ns) {
                slot->empty_ns = std::min(slot->empty_ns.value_or(time_ns), time_ns);
            }
        }
    }
    for (const SourceFacts& source : facts_.sources) {
        if (!wrote(source)) {
            continue;  // another source's row
        }
        for (const Metric metric : source.metrics) {
            if (!is_filled(metric)) {
                in_order &= put(metric, time_ns, nan, read_ns);
            }
        }
    }
    out_of_order_ += in_order ? 0 : 1;
}

meter::SensorTiming DeviceWindows::energy_timing() const {
    for (const Metric metric : energy_metrics) {
        if (const SourceFacts* source = channel(metric) != nullptr ? source_of(metric) : nullptr) {
            return source->timing;
        }
    }
    return {};
}

GaugeTotals DeviceWindows::gauge(Metric metric, const Window& window) const {
    const Channel* found = channel(metric);
    return found != nullptr ? found->gauge->over(window.start_edge, window.end_edge) : GaugeTotals{};
}

void DeviceWindows::add_energy(DeviceMetrics& metrics, const Window& window) const {
    const double duration = seconds(window.end_ns - window.start_ns);
    const auto stale_s = [&](Metric metric) {
        const SourceFacts* source = source_of(metric);
        return source != nullptr ? source->native_period_s : 0;
    };
    const auto method = [&](Metric metric, const char* measured) {
        const SourceFacts* source = source_of(metric);
        return source != nullptr && source->estimated ? "estimated" : measured;
    };

    Metric power_metric{}, counter_metric{};
    const Channel* power_channel = first_of(power_metrics, power_metric);
    const Channel* counter_channel = first_of(energy_metrics, counter_metric);
    if (power_channel != nullptr && power_channel->maximum <= 0) {
        power_channel = nullptr;
    }
    GaugeTotals power;
    CounterTotals counter;
    if (power_channel != nullptr) {
        power = power_channel->gauge->over(window.start_edge, window.end_edge);
        metrics.samples = power.samples;
        metrics.covered_s = seconds(power.covered_ns);
        metrics.mean_power_w = mean(power);
        metrics.max_power_w = present(power.maximum);
        if (power.samples > 0) {
            metrics.energy_protocol_j = duration * power.sum / static_cast<double>(power.samples);
        }
        if (power.covered_ns > 0) {
            metrics.energy_integrated_j = power.integral;
        }
    }
    if (counter_channel != nullptr) {
        counter = counter_channel->counter->over(window.start_edge, window.end_edge);
        if (counter.covered_ns > 0 && counter.resets == 0) {
            metrics.energy_counter_j = counter.difference;
        }
        if (power_channel == nullptr) {
            metrics.samples = counter.samples;
            metrics.covered_s = seconds(counter.covered_ns);
            if (counter.covered_ns > counter.reset_ns) {
                metrics.mean_power_w = counter.difference / seconds(counter.covered_ns - counter.reset_ns);
            }
        }
    }

    // What was not measured is between nothing and this, all the time.
    double most_w = most_power_w(power_channel);
    const bool limited = channel(gpu_power_limit_w) != nullptr || facts_.power_limit_w;
    if (most_w <= 0) {
        most_w = metrics.mean_power_w.value_or(0);
    }
    const auto bound = [&](double unmeasured_s) { return most_w * std::min(unmeasured_s, duration); };
    const Standstill::Stretch* stuck_span =
        power_channel != nullptr ? stuck(*power_channel, source_of(power_metric)) : nullptr;
    const double lost_s =
        stuck_span != nullptr ? std::max(0.0, seconds(std::min(window.end_ns, stuck_span->end_ns) -
                                                      std::max(window.start_ns, stuck_span->start_ns)))
                              : 0;

    // An edge beyond all samples is as far away as the time it stands for.
    const double start_reach = seconds(counter.start_distance_ns - (window.start_ns - window.start_edge));
    const double end_reach = seconds(counter.end_distance_ns - (window.end_edge - window.end_ns));
    // A reading is as old as a refresh; what shows for longer stands still.
    const double refresh_s = stale_s(counter_metric);
    const double still_s = seconds(counter.still_ns) +
                           std::max(0.0, seconds(counter.start_age_ns) - refresh_s) +
                           std::max(0.0, seconds(counter.end_age_ns) - refresh_s);
    const double peak_w = power_channel != nullptr && lost_s == 0
                              ? std::max(power_channel->maximum, counter.difference / duration)
                              : most_w;
    const double counter_bound =
        std::min(peak_w * 2 * refresh_s + bound(start_reach + end_reach + still_s), bound(duration));

    const CounterEvidence evidence{
        .duration_s = duration,
        .counter_j = counter.difference,
        .counter_covered_s = seconds(counter.covered_ns),
        .still_s = power_channel != nullptr ? still_s : 0,
        .integral_j = power.integral - (lost_s > 0 ? lost_s * stuck_span->value : 0),
        .power_covered_s = metrics.covered_s,
        .peak_w = most_w,
        .bound_j = counter_bound};
    if (metrics.energy_counter_j && counter_plausible(evidence)) {
        metrics.energy_j = metrics.energy_counter_j;
        metrics.energy_bound_j = counter_bound;
        metrics.energy_method = method(counter_metric, "counter");
    } else if (metrics.energy_integrated_j) {
        metrics.energy_j = metrics.energy_integrated_j;
        metrics.energy_bound_j = bound(duration - seconds(power.covered_ns) + seconds(power.unseen_ns) +
                                       2 * stale_s(power_metric) + lost_s);
        metrics.energy_method = method(power_metric, "integrated");
        if (metrics.energy_counter_j && counter_spans(evidence) && counter.difference > 0 &&
            (counter_possible(evidence) || !limited)) {
            metrics.energy_bound_j = std::max(
                *metrics.energy_bound_j, std::abs(counter.difference - power.integral) + counter_bound);
        }
    } else if (counter.resets > 0 && counter.difference > 0) {
        metrics.energy_j = counter.difference;
        metrics.energy_bound_j = std::min(counter_bound + bound(seconds(counter.reset_ns)), bound(duration));
        metrics.energy_method = method(counter_metric, "counter");
    }
}

DeviceMetrics DeviceWindows::over(const Window& window) const {
    DeviceMetrics metrics;
    metrics.device = facts_.id;
    metrics.component = facts_.component;
    metrics.simulated = facts_.simulated;
    add_energy(metrics, window);
    if (profile_ && profile_edges_.has(window.start_edge) && profile_edges_.has(window.end_edge)) {
        metrics.profile = profile_->over(window.start_edge, window.end_edge);
    }
    if (power_1hz_) {
        const GaugeTotals sparse = power_1hz_->over(window.start_edge, window.end_edge);
        metrics.mean_power_1hz_w = sparse.covered_ns > 0 ? present(sparse.mean()) : std::nullopt;
    }
    const GaugeTotals memory = gauge(gpu_memory_used_bytes, window);
    metrics.gpu_memory_util_pct = share_pct(mean(memory), facts_.memory_bytes);
    metrics.gpu_memory_max_pct = share_pct(present(memory.maximum), facts_.memory_bytes);
    metrics.gpu_memory_busy_pct = mean(gauge(gpu_memory_busy_pct, window));
    metrics.gpu_busy_pct = mean(gauge(gpu_busy_pct, window));
    metrics.sm_util_pct = mean(gauge(gpu_sm_util_pct, window));
    metrics.sm_clock_mhz = mean(gauge(gpu_sm_clock_mhz, window));
    metrics.temperature_c = mean(gauge(gpu_temperature_c, window));
    metrics.power_limit_w = mean(gauge(gpu_power_limit_w, window));
    metrics.throttled_pct = mean(gauge(gpu_throttle_reasons, window));
    const GaugeTotals busy = gauge(cpu_busy_pct, window);
    metrics.cpu_busy_pct = mean(busy);
    if (const Channel* process = channel(cpu_process_s); process != nullptr) {
        const CounterTotals cpu_time = process->counter->over(window.start_edge, window.end_edge);
        if (cpu_time.covered_ns > 0) {
            metrics.process_cpu_s = cpu_time.difference;
        }
    }
    if (metrics.samples == 0 && !metrics.energy_j) {
        metrics.samples = busy.samples;
        metrics.covered_s = seconds(busy.covered_ns);
    }
    return metrics;
}

std::vector<Series> DeviceWindows::series() const {
    std::vector<Series> all;
    for (std::size_t metric = 0; metric < sensors::metric_count; ++metric) {
        const Channel* from = channels_[metric].get();
        if (from == nullptr || from->bins.bins().empty()) {
            continue;
        }
        Series series;
        series.device = facts_.id;
        const auto& info = sensors::info(static_cast<Metric>(metric));
        series.metric = info.behaviour == Behaviour::flags ? "throttled_pct"
                        : !from->counter                   ? std::string(info.name)
                        : info.name == "energy_j"          ? "counter_power_w"
                                                           : std::string(info.name) + "_rate";
        const auto& bins = from->bins.bins();
        for (std::size_t bin = 0; bin < bins.size(); ++bin) {
            const std::int64_t time =
                from->bins.start_ns() + static_cast<std::int64_t>(bin) * from->bins.width_ns();
            if (bins[bin].samples > 0) {
                series.time_ns.push_back(time);
                series.minimum.push_back(bins[bin].minimum);
                series.mean.push_back(bins[bin].sum / static_cast<double>(bins[bin].samples));
                series.maximum.push_back(bins[bin].maximum);
            } else if (!std::isnan(series.mean.back()) && time - series.time_ns.back() > from->max_gap_ns) {
                series.time_ns.push_back(time);
                for (auto* values : {&series.minimum, &series.mean, &series.maximum}) {
                    values->push_back(nan);
                }
            }
        }
        all.push_back(std::move(series));
    }
    return all;
}

std::vector<Warning> DeviceWindows::warnings() const {
    std::vector<Warning> all;
    if (out_of_order_ > 0) {
        all.push_back(
            {"out_of_order", fmt::format("{}: {} row{} not later than the one before: left out", facts_.id,
                                         out_of_order_, out_of_order_ == 1 ? " is" : "s are")});
    }
    if (implausible_ > 0) {
        all.push_back({"implausible_power",
                       fmt::format("{}: {} power reading{} (the first {} W) cannot be true: taken as a gap",
                                   facts_.id, implausible_, implausible_ == 1 ? "" : "s", implausible_w_)});
    }
    Metric metric{}, power_metric{};
    const Channel* power = first_of(power_metrics, power_metric);
    const SourceFacts* source = source_of(power_metric);
    const bool estimated = source != nullptr && source->estimated;
    if (power != nullptr && power->maximum <= 0) {
        all.push_back(
            {"stuck_sensor", fmt::format("{}: {} was 0 W in all {} samples: the sensor measures nothing",
                                         facts_.id, sensors::info(power_metric).name, power->samples)});
        power = nullptr;
    }
    if (const Channel* counter = first_of(energy_metrics, metric);
        counter != nullptr && counter->counter->resets() > 0) {
        const std::int64_t resets = counter->counter->resets();
        all.push_back(
            {"counter_reset",
             fmt::format("{}: the energy counter started again {} time{}: energies across that {}", facts_.id,
                         resets, resets == 1 ? "" : "s",
                         power != nullptr ? "are integrals of power"
                                          : "lack what was drawn meanwhile, which their bounds tell")});
    }
    if (const auto* stretch = power != nullptr ? stuck(*power, source) : nullptr) {
        all.push_back({"stuck_sensor",
                       fmt::format("{}: {} stood at {} W for {:.0f} s, in {} samples: the sensor does not "
                                   "follow its device, and its power of that time is no measurement",
                                   facts_.id, sensors::info(power_metric).name, stretch->value,
                                   stretch->duration_s(), stretch->samples)});
    }
    if (facts_.simulated) {
        return all;  // a simulated device may well stand still all the time
    }
    if (power != nullptr && !estimated && power->samples >= Standstill::least_samples &&
        power->minimum == power->maximum) {
        all.push_back(
            {"stuck_sensor",
             fmt::format("{}: {} stood at {} W in all {} samples: the sensor does not follow", facts_.id,
                         sensors::info(power_metric).name, power->maximum, power->samples)});
    }
    if (const Channel* counter = first_of(energy_metrics, metric);
        counter != nullptr && counter->samples >= Standstill::least_samples &&
        counter->minimum == counter->maximum) {
        all.push_back({"stuck_sensor", fmt::format("{}: the energy counter never moved in {} samples",
                                                   facts_.id, counter->samples)});
    }
    return all;
}

}  // namespace joulemark::store
