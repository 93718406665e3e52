// SPDX-License-Identifier: Apache-2.0
#include "core/series.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/units.h"

namespace joulemark {

Edges::Edges(std::vector<std::int64_t> times) : times_(std::move(times)) {
    std::ranges::sort(times_);
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
}

std::size_t Edges::at(std::int64_t time) const {
    const auto found = std::ranges::lower_bound(times_, time);
    assert(found != times_.end() && *found == time);
    return static_cast<std::size_t>(found - times_.begin());
}

bool Edges::has(std::int64_t time) const {
    return std::ranges::binary_search(times_, time);
}

double GaugeTotals::mean() const {
    return covered_ns > 0 ? integral / seconds(covered_ns) : std::numeric_limits<double>::quiet_NaN();
}

void GaugeTotals::add(const GaugeTotals& other) {
    integral += other.integral;
    covered_ns += other.covered_ns;
    unseen_ns += other.unseen_ns;
    samples += other.samples;
    sum += other.sum;
    minimum = std::min(minimum, other.minimum);
    maximum = std::max(maximum, other.maximum);
}

GaugeSeries::GaugeSeries(const Edges& edges, std::int64_t max_gap_ns, Between between, std::int64_t shown_ns)
    : edges_(edges),
      max_gap_ns_(max_gap_ns),
      between_(between),
      shown_ns_(shown_ns),
      slots_(edges.slot_count()) {}

void GaugeSeries::integrate(std::int64_t from, double from_value, std::int64_t to, double to_value) {
    const double slope = between_ == Between::linear ? (to_value - from_value) / seconds(to - from) : 0;
    const double unseen = to - from > shown_ns_ ? 1 - seconds(shown_ns_) / seconds(to - from) : 0;
    std::size_t edge = (slot_ + 1) / 2;  // the first one later than `from`, or `from` itself
    for (std::int64_t at = from; at < to;) {
        while (edge < edges_.count() && edges_[edge] <= at) {
            ++edge;
        }
        const std::int64_t until = edge < edges_.count() ? std::min(edges_[edge], to) : to;
        const double middle = from_value + slope * (seconds(at - from) + seconds(until - at) / 2);
        GaugeTotals& slot = slots_[2 * edge];
        slot.integral += middle * seconds(until - at);
        slot.covered_ns += until - at;
        slot.unseen_ns += nanoseconds(unseen * seconds(until - at));
        at = until;
    }
}

bool GaugeSeries::add(std::int64_t time_ns, double value) {
    if (any_ && time_ns <= last_time_) {
        return time_ns == last_time_;
    }
    if (any_ && time_ns - last_time_ <= max_gap_ns_ && !std::isnan(last_value_) && !std::isnan(value)) {
        integrate(last_time_, last_value_, time_ns, value);
    }
    std::size_t edge = slot_ / 2;
    while (edge < edges_.count() && edges_[edge] < time_ns) {
        ++edge;
    }
    slot_ = 2 * edge + (edge < edges_.count() && edges_[edge] == time_ns ? 1 : 0);
    any_ = true;
    last_time_ = time_ns;
    last_value_ = value;
    if (!std::isnan(value)) {
        slots_[slot_].add({.samples = 1, .sum = value, .minimum = value, .maximum = value});
        maximum_ = std::fmax(maximum_, value);
    }
    return true;
}

GaugeTotals GaugeSeries::over(std::int64_t start_ns, std::int64_t end_ns) const {
    GaugeTotals totals;
    const std::size_t last = 2 * edges_.at(end_ns) + 1;
    for (std::size_t slot = 2 * edges_.at(start_ns) + 1; slot <= last; ++slot) {
        totals.add(slots_[slot]);
    }
    return totals;
}

bool CounterSeries::add(std::int64_t time_ns, double value) {
    if (std::isnan(value)) {
        return true;
    }
    if (samples_ > 0 && time_ns <= last_time_) {
        return time_ns == last_time_;
    }
    const bool first = samples_ == 0;
    const bool reset = !first && value < last_raw_;
    const bool moved = first || value != last_raw_;
    const std::int64_t lost_ns = reset ? time_ns - last_time_ : 0;
    const std::int64_t age_ns = first ? 0 : last_time_ - changed_ns_;  // of the value before
    const std::int64_t still_before_ns = still_ns_;
    still_ns_ += moved && age_ns >= standstill_ns ? time_ns - changed_ns_ : 0;
    const double next_value = first ? value : last_value_ + (reset ? 0 : value - last_raw_);
    for (std::size_t number = passed_.size(); number < edges_.count() && edges_[number] <= time_ns;
         ++number) {
        const std::int64_t at = edges_[number];
        const std::int64_t through = resets_ + (reset ? 1 : 0), ns_through = reset_ns_ + lost_ns;
        AtEdge passed{.value = next_value,
                      .distance_ns = time_ns - at,
                      .covered_until_ns = time_ns,
                      .resets_before = at == time_ns ? through : resets_,
                      .resets_through = through,
                      .reset_ns_before = at == time_ns ? ns_through : reset_ns_,
                      .reset_ns_through = ns_through,
                      .samples_before = samples_,
                      .samples_through = samples_ + (at == time_ns ? 1 : 0),
                      .still_ns = at == time_ns ? still_ns_ : still_before_ns,
                      .age_ns = !moved ? at - changed_ns_ : at == time_ns ? 0 : age_ns};
        if (!first) {
            const double share = seconds(at - last_time_) / seconds(time_ns - last_time_);
            passed.value = last_value_ + share * (next_value - last_value_);
            passed.distance_ns = std::min(at - last_time_, time_ns - at);
            passed.covered_until_ns = at;
        }
        passed_.push_back(passed);
    }
    ++samples_;
    resets_ += reset ? 1 : 0;
    reset_ns_ += lost_ns;
    changed_ns_ = moved ? time_ns : changed_ns_;
    last_time_ = time_ns;
    last_raw_ = value;
    last_value_ = next_value;
    return true;
}

CounterSeries::AtEdge CounterSeries::edge(std::size_t number) const {
    if (number < passed_.size()) {
        return passed_[number];
    }
    return {.value = last_value_,
            .distance_ns = edges_[number] - last_time_,
            .covered_until_ns = last_time_,
            .resets_before = resets_,
            .resets_through = resets_,
            .reset_ns_before = reset_ns_,
            .reset_ns_through = reset_ns_,
            .samples_before = samples_,
            .samples_through = samples_,
            .still_ns = still_ns_,
            .age_ns = last_time_ - changed_ns_};
}

CounterTotals CounterSeries::over(std::int64_t start_ns, std::int64_t end_ns) const {
    if (samples_ == 0) {
        return {};
    }
    const AtEdge start = edge(edges_.at(start_ns));
    const AtEdge end = edge(edges_.at(end_ns));
    return {.difference = end.value - start.value,
            .covered_ns = std::max<std::int64_t>(0, end.covered_until_ns - start.covered_until_ns),
            .samples = end.samples_through - start.samples_before,
            .resets = end_ns > start_ns ? end.resets_through - start.resets_before : 0,
            .reset_ns = end_ns > start_ns ? end.reset_ns_through - start.reset_ns_before : 0,
            .still_ns = end.still_ns - start.still_ns,
            .start_age_ns = start.age_ns,
            .end_age_ns = end.age_ns,
            .start_distance_ns = start.distance_ns,
            .end_distance_ns = end.distance_ns};
}

}  // namespace joulemark
