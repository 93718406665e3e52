// SPDX-License-Identifier: Apache-2.0
#include "meter/totals.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/energy.h"
#include "core/series.h"
#include "core/units.h"

namespace joulemark::meter {
namespace {

constexpr std::size_t command_window = 0;
constexpr std::size_t epochs_window = 1;

/// Whether a source's metric tells the energy of its device, and how.
enum class Tells { nothing, power, energy };

Tells tells(sensors::Metric metric, const sensors::SourceInfo& info) {
    using enum sensors::Metric;
    switch (metric) {
        case gpu_energy_j:
        case cpu_energy_j:
        case node_energy_j:
            return Tells::energy;
        case gpu_power_instant_w:
        case cpu_power_w:
        case node_power_w:
            return Tells::power;
        case gpu_power_w:  // lags where it is an average, so only where there is no instant value
            return std::ranges::find(info.metrics, gpu_power_instant_w) == info.metrics.end()
                       ? Tells::power
                       : Tells::nothing;
        default:
            return Tells::nothing;
    }
}

}  // namespace

void EnergyLine::settle(std::array<Window, window_count>& windows, const Edge& edge, const Sum& at_edge) {
    auto& [at_begin, sum] = windows[edge.window];
    if (edge.begin) {
        at_begin = at_edge;
        return;
    }
    sum.energy_j += at_edge.energy_j - at_begin.energy_j;
    sum.covered_s += at_edge.covered_s - at_begin.covered_s;
    sum.reach_s += at_edge.reach_s + at_begin.reach_s;
    sum.still_s += at_edge.still_s - at_begin.still_s;
    sum.age_s += at_edge.age_s + at_begin.age_s;
    sum.resets += at_edge.resets - at_begin.resets;
}

void EnergyLine::add(std::int64_t time_ns, double value) {
    if (samples_ > 0 && time_ns <= last_ns_) {
        return;
    }
    if (std::isnan(value)) {
        if (!counter_) {
            last_ = value;  // no straight line across a gap
        }
        return;
    }
    const Sum from = total_;
    const double span_s = samples_ > 0 ? seconds(time_ns - last_ns_) : 0;
    double slope = 0;  // of power inside the span
    double power = 0;  // at its start
    bool covered = false;
    if (samples_ > 0 && counter_) {
        covered = true;
        total_.resets += value < last_ ? 1 : 0;
        total_.energy_j += std::max(0.0, value - last_);  // a counter that went backwards was reset
        power = (total_.energy_j - from.energy_j) / span_s;
    } else if (samples_ > 0 && !std::isnan(last_) && time_ns - last_ns_ <= max_gap_ns_) {
        covered = true;
        power = last_;
        slope = (value - last_) / span_s;
        total_.energy_j += (last_ + value) / 2 * span_s;
    }
    total_.covered_s += covered ? span_s : 0;
    const bool moved = samples_ == 0 || value != last_;
    const std::int64_t age_ns = last_ns_ - changed_ns_;  // of the last reading
    total_.still_s += moved && age_ns >= CounterSeries::standstill_ns ? seconds(time_ns - changed_ns_) : 0;
    for (; !waiting_.empty() && waiting_.front().time_ns <= time_ns; waiting_.pop_front()) {
        const Edge& edge = waiting_.front();
        const double into_s = samples_ > 0 ? std::max(0.0, seconds(edge.time_ns - last_ns_)) : 0;
        const double left_s = seconds(time_ns - edge.time_ns);
        const bool at_sample = edge.time_ns == time_ns;
        settle(windows_, edge,
               {.energy_j = from.energy_j + (power + slope * into_s / 2) * into_s,
                .covered_s = from.covered_s + (covered ? into_s : 0),
                .reach_s = samples_ > 0 ? std::min(into_s, left_s) : left_s,
                .still_s = (at_sample ? total_ : from).still_s,
                .age_s = !moved ? seconds(edge.time_ns - changed_ns_) : at_sample ? 0 : seconds(age_ns),
                .resets = edge.begin ? from.resets : total_.resets});
    }
    changed_ns_ = moved ? time_ns : changed_ns_;
    last_ns_ = time_ns;
    last_ = value;
    peak_ = std::max(peak_, value);
    standstill_.add(time_ns, value);
    ++samples_;
}

void EnergyLine::edge(std::int64_t time_ns, bool begin, std::size_t window) {
    waiting_.push_back({time_ns, begin, window});
}

std::optional<EnergyLine::Sum> EnergyLine::sum(std::size_t window) const {
    if (samples_ < 2) {
        return std::nullopt;
    }
    auto windows = windows_;
    for (const Edge& edge : waiting_) {
        Sum at_edge = total_;
        at_edge.reach_s = std::max(0.0, seconds(edge.time_ns - last_ns_));
        at_edge.age_s = seconds(last_ns_ - changed_ns_);
        settle(windows, edge, at_edge);
    }
    return windows[window].sum;
}

Totals::Totals(const std::vector<sensors::Device>& devices,
               const std::vector<std::unique_ptr<sensors::Source>>& sources, double rate_hz,
               double energy_rate_hz)
    : devices_(devices), lines_of_source_(sources.size()) {
    for (std::size_t source = 0; source < sources.size(); ++source) {
        const sensors::SourceInfo& info = sources[source]->info();
        const auto device = std::ranges::find(devices, info.device, &sensors::Device::id);
        const std::int64_t gap_ns = max_gap_ns(1 / (info.slow ? energy_rate_hz : rate_hz));
        for (std::size_t value = 0; value < info.metrics.size() && device != devices.end(); ++value) {
            const Tells what = tells(info.metrics[value], info);
            if (what != Tells::nothing) {
                lines_of_source_[source].push_back(lines_.size());
                lines_.push_back({value, static_cast<std::size_t>(device - devices.begin()),
                                  sources[source].get(), what == Tells::energy,
                                  EnergyLine(what == Tells::energy, gap_ns)});
            }
        }
    }
}

void Totals::add(const Row& row) {
    for (const std::size_t line : lines_of_source_[row.source]) {
        lines_[line].energy.add(row.time_ns, row.values[lines_[line].value]);
    }
}

void Totals::edge(std::int64_t time_ns, bool begin, std::size_t window) {
    for (Line& line : lines_) {
        line.energy.edge(time_ns, begin, window);
    }
}

void Totals::command_edge(std::int64_t time_ns, bool begin) {
    edge(time_ns, begin, command_window);
    if (begin) {
        command_start_ns_ = time_ns;
    } else {
        command_s_ += seconds(time_ns - command_start_ns_);
    }
}

void Totals::epoch_edge(std::int64_t time_ns, Message::Event event, int rank) {
    const bool begin = event == Message::Event::begin;
    if (epoch_rank_.value_or(rank) != rank || (!begin && !epoch_start_ns_)) {
        return;
    }
    epoch_rank_ = rank;
    if (event == Message::Event::abort) {
        ++epochs_.aborted;
        epoch_start_ns_.reset();
        return;  // what the window's begin held is replaced by the next one
    }
    edge(time_ns, begin, epochs_window);
    if (begin) {
        epoch_start_ns_ = time_ns;
    } else {
        epochs_.seconds += seconds(time_ns - *epoch_start_ns_);
        ++epochs_.count;
        epoch_start_ns_.reset();
    }
}

/// The first line of each kind that has anything to tell; a second one adds nothing.
Totals::Reading Totals::reading(std::size_t device, std::size_t window) const {
    Reading reading;
    for (const Line& line : lines_) {
        const Line*& chosen = line.counter ? reading.counter : reading.power;
        const auto sum = line.energy.sum(window);
        // A power sensor that never said anything but zero measured nothing.
        if (line.device == device && sum && !chosen && (line.counter || line.energy.peak() > 0)) {
            chosen = &line;
            (line.counter ? reading.counted : reading.integrated) = sum;
        }
    }
    return reading;
}

/// Why the counter does not tell the energy of a window of this length; "" when it does.
std::string Totals::doubt(const Reading& reading, const sensors::Device& device, double duration_s) const {
    const sensors::CounterEvents events = reading.counter->source->events();
    if (events.resets > 0 || reading.counted->resets > 0) {
        return "was reset";
    }
    if (events.unknowable > 0) {
        return "wrapped unseen";
    }
    const EnergyLine::Sum power = reading.integrated.value_or(EnergyLine::Sum{});
    // A power that stood still for long says nothing against a counter that moves.
    const Standstill stood = reading.power ? reading.power->energy.standstill() : Standstill();
    const double stood_j = stood.long_enough() ? stood.longest().value * stood.longest().duration_s() : 0;
    const double limit_w = device.power_limit_w.value_or(0);
    const double peak_w = reading.power ? std::max(reading.power->energy.peak(), limit_w)
                          : limit_w > 0 ? limit_w
                                        : reading.counted->energy_j / std::max(reading.counted->covered_s, 1e-9);
    const double stale_s = reading.counter->source->info().native_period_s.value_or(0);
    const double still_s =
        reading.counted->still_s + std::max(0.0, reading.counted->age_s - 2 * stale_s);
    const CounterEvidence evidence{
        .duration_s = duration_s,
        .counter_j = reading.counted->energy_j,
        .counter_covered_s = reading.counted->covered_s,
        .still_s = reading.power ? still_s : 0,
        .integral_j = power.energy_j - stood_j,
        .power_covered_s = reading.power ? power.covered_s : reading.counted->covered_s,
        .peak_w = peak_w,
        .bound_j = peak_w * std::min(reading.counted->reach_s + 2 * stale_s, duration_s)};
    if (counter_plausible(evidence)) {
        return "";
    }
    return events.frozen > 0          ? "stood still"
           : evidence.counter_j <= 0  ? "did not move"
           : counter_spans(evidence)  ? "contradicts the power"
           : evidence.still_s > 0     ? "stood still"
                                      : "gave no readings for a while";
}

std::vector<Totals::Entry> Totals::entries() const {
    std::vector<Entry> entries;
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        const Reading command = reading(device, command_window);
        if (!command.counter && !command.power) {
            continue;
        }
        Entry entry{.device = devices_[device].id, .component = devices_[device].component};
        if (command.counter) {
            entry.counter_j = command.counted->energy_j;
            entry.doubt = doubt(command, devices_[device], command_s_);
        }
        if (command.power) {
            entry.integrated_j = command.integrated->energy_j;
        }
        const bool counted = command.counter && entry.doubt.empty();
        if (const Line* best = counted ? command.counter : command.power) {
            const EnergyLine::Sum epochs = *best->energy.sum(epochs_window);
            entry.method = best->source->info().method;
            entry.covered_s = (counted ? command.counted : command.integrated)->covered_s;
            if (epochs.covered_s >= least_coverage * epochs_.seconds) {
                entry.epochs_j = epochs.energy_j;
            }
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace joulemark::meter
