// SPDX-License-Identifier: Apache-2.0
#include "meter/totals.h"

#include <algorithm>
#include <cmath>

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

void EnergyLine::settle(std::array<Window, window_count>& windows, const Edge& edge, double energy) {
    Window& window = windows[edge.window];
    if (edge.begin) {
        window.at_begin = energy;
    } else {
        window.sum += energy - window.at_begin;
    }
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
    const double from = energy_j_;
    const double span_s = samples_ > 0 ? seconds(time_ns - last_ns_) : 0;
    double slope = 0;  // of power inside the span
    double power = 0;  // at its start
    if (samples_ > 0 && counter_) {
        energy_j_ += std::max(0.0, value - last_);  // a counter that went backwards was reset
        power = (energy_j_ - from) / span_s;
    } else if (samples_ > 0 && !std::isnan(last_) && time_ns - last_ns_ <= max_gap_ns_) {
        power = last_;
        slope = (value - last_) / span_s;
        energy_j_ += (last_ + value) / 2 * span_s;
    }
    for (; !waiting_.empty() && waiting_.front().time_ns <= time_ns; waiting_.pop_front()) {
        const double into_s = samples_ > 0 ? std::max(0.0, seconds(waiting_.front().time_ns - last_ns_)) : 0;
        settle(windows_, waiting_.front(), from + (power + slope * into_s / 2) * into_s);
    }
    last_ns_ = time_ns;
    last_ = value;
    ++samples_;
}

void EnergyLine::edge(std::int64_t time_ns, bool begin, std::size_t window) {
    waiting_.push_back({time_ns, begin, window});
}

std::optional<double> EnergyLine::energy_j(std::size_t window) const {
    if (samples_ < 2) {
        return std::nullopt;
    }
    auto windows = windows_;
    for (const Edge& edge : waiting_) {
        settle(windows, edge, energy_j_);
    }
    return windows[window].sum;
}

Totals::Totals(const std::vector<sensors::Device>& devices,
               const std::vector<std::unique_ptr<sensors::Source>>& sources, std::int64_t max_gap_ns)
    : devices_(devices), lines_of_source_(sources.size()) {
    for (std::size_t source = 0; source < sources.size(); ++source) {
        const sensors::SourceInfo& info = sources[source]->info();
        const auto device = std::ranges::find(devices, info.device, &sensors::Device::id);
        for (std::size_t value = 0; value < info.metrics.size() && device != devices.end(); ++value) {
            const Tells what = tells(info.metrics[value], info);
            if (what != Tells::nothing) {
                lines_of_source_[source].push_back(lines_.size());
                lines_.push_back({value, static_cast<std::size_t>(device - devices.begin()), info.method,
                                  what == Tells::energy, EnergyLine(what == Tells::energy, max_gap_ns)});
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
}

void Totals::epoch_edge(std::int64_t time_ns, bool begin, int rank) {
    if (epoch_rank_.value_or(rank) != rank || (!begin && !epoch_start_ns_)) {
        return;
    }
    epoch_rank_ = rank;
    edge(time_ns, begin, epochs_window);
    if (begin) {
        epoch_start_ns_ = time_ns;
    } else {
        epochs_.seconds += seconds(time_ns - *epoch_start_ns_);
        ++epochs_.count;
        epoch_start_ns_.reset();
    }
}

std::vector<Totals::Entry> Totals::entries() const {
    std::vector<Entry> entries;
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        Entry entry{.device = devices_[device].id, .component = devices_[device].component};
        for (const Line& line : lines_) {
            const auto energy = line.energy.energy_j(command_window);
            if (line.device != device || !energy) {
                continue;
            }
            auto& kind = line.counter ? entry.counter_j : entry.integrated_j;
            if (kind) {
                continue;  // a second source of the same kind adds nothing
            }
            kind = energy;
            if (line.counter || !entry.epochs_j) {
                entry.method = line.method;
                entry.epochs_j = line.energy.energy_j(epochs_window);
            }
        }
        if (entry.best()) {
            entries.push_back(std::move(entry));
        }
    }
    return entries;
}

}  // namespace joulemark::meter
