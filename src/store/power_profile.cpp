// SPDX-License-Identifier: Apache-2.0
#include "store/power_profile.h"

#include <algorithm>
#include <cmath>

#include "core/units.h"

namespace joulemark::store {
namespace {

constexpr double bin_ratio = 1.07;
/// The running mean forgets with this time constant; a crossing has to leave it by this share of it, so that
/// noise around a steady power is no fluctuation.
constexpr double running_mean_s = 10;
constexpr double dead_band = 0.05;
/// At its limit: nearer than this. Idle: less busy than this.
constexpr double at_limit = 0.97;
constexpr double idle_pct = 5;

std::size_t bin_of(double watts, std::size_t bins) {
    const double place = watts > 1 ? std::log(watts) / std::log(bin_ratio) : 0;
    return std::min(static_cast<std::size_t>(place), bins - 1);
}

}  // namespace

PowerProfile::PowerProfile(const Edges& edges, std::int64_t max_gap_ns)
    : edges_(edges), max_gap_ns_(max_gap_ns), slots_(edges.count() + 1) {}

void PowerProfile::Slot::add(const Slot& other) {
    for (std::size_t bin = 0; bin < bins; ++bin) {
        seconds[bin] += other.seconds[bin];
    }
    covered_s += other.covered_s;
    sum += other.sum;
    squares += other.squares;
    limited_s += other.limited_s;
    limit_known_s += other.limit_known_s;
    idle_s += other.idle_s;
    busy_known_s += other.busy_known_s;
    rises += other.rises;
}

/// The sample's power up to the next sample, cut at the edges between.
void PowerProfile::hold(const Sample& sample, std::int64_t until_ns) {
    const std::size_t bin = bin_of(sample.watts, bins);
    for (std::int64_t from = sample.time_ns; from < until_ns;) {
        while (slot_ < edges_.count() && edges_[slot_] <= from) {
            ++slot_;
        }
        const std::int64_t to = slot_ < edges_.count() ? std::min(edges_[slot_], until_ns) : until_ns;
        const double duration = seconds(to - from);
        Slot& slot = slots_[slot_];
        slot.seconds[bin] += static_cast<float>(duration);
        slot.covered_s += duration;
        slot.sum += duration * sample.watts;
        slot.squares += duration * sample.watts * sample.watts;
        if (!std::isnan(sample.limit_w)) {
            slot.limit_known_s += duration;
            slot.limited_s += sample.watts >= at_limit * sample.limit_w ? duration : 0;
        }
        if (!std::isnan(sample.busy_pct)) {
            slot.busy_known_s += duration;
            slot.idle_s += sample.busy_pct < idle_pct ? duration : 0;
        }
        from = to;
    }
}

void PowerProfile::add(std::int64_t time_ns, double watts, double limit_w, double busy_pct) {
    if (last_ && time_ns <= last_->time_ns) {
        return;
    }
    const bool continues = last_ && time_ns - last_->time_ns <= max_gap_ns_;
    if (continues) {
        hold(*last_, time_ns);
    }
    last_.reset();
    if (std::isnan(watts)) {
        return;
    }
    if (!continues || std::isnan(running_mean_w_)) {
        running_mean_w_ = watts;
        above_ = false;
    } else if (above_ ? watts < (1 - dead_band) * running_mean_w_
                      : watts > (1 + dead_band) * running_mean_w_) {
        above_ = !above_;
        while (slot_ < edges_.count() && edges_[slot_] <= time_ns) {
            ++slot_;
        }
        slots_[slot_].rises += above_ ? 1 : 0;
    }
    const double age_s = continues ? seconds(time_ns - time_of_mean_ns_) : 0;
    running_mean_w_ += (watts - running_mean_w_) * -std::expm1(-age_s / running_mean_s);
    time_of_mean_ns_ = time_ns;
    last_ = Sample{time_ns, watts, limit_w, busy_pct};
}

std::optional<ProfileMetrics> PowerProfile::over(std::int64_t start_ns, std::int64_t end_ns) const {
    Slot total;
    for (std::size_t slot = edges_.at(start_ns) + 1; slot <= edges_.at(end_ns); ++slot) {
        total.add(slots_[slot]);
    }
    if (total.covered_s <= 0) {
        return std::nullopt;
    }
    const double mean = total.sum / total.covered_s;
    const auto percentile = [&](double share) {
        double before = 0;
        const double wanted = share * total.covered_s;
        for (std::size_t bin = 0; bin < bins; ++bin) {
            if (total.seconds[bin] > 0 && before + total.seconds[bin] >= wanted) {
                const double place = std::clamp((wanted - before) / total.seconds[bin], 0.0, 1.0);
                return std::pow(bin_ratio, static_cast<double>(bin) + place);
            }
            before += total.seconds[bin];
        }
        return mean;
    };
    const auto share_pct = [](double part, double whole) {
        return whole > 0 ? std::optional(100 * part / whole) : std::nullopt;
    };
    return ProfileMetrics{.p5_w = percentile(0.05),
                          .median_w = percentile(0.5),
                          .p95_w = percentile(0.95),
                          .sd_w = std::sqrt(std::max(0.0, total.squares / total.covered_s - mean * mean)),
                          .fluctuation_hz = static_cast<double>(total.rises) / total.covered_s,
                          .at_limit_pct = share_pct(total.limited_s, total.limit_known_s),
                          .idle_pct = share_pct(total.idle_s, total.busy_known_s)};
}

}  // namespace joulemark::store
