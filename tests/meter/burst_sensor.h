// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/units.h"
#include "meter/attribution.h"
#include "meter/power_timing.h"

namespace joulemark::meter {

/// A load with known energy, and the counter of a sensor that refreshes, lags and averages: exact at every
/// instant, without a grid of time.
class BurstSensor {
  public:
    struct Timing {
        double refresh_s = 0.1, lag_s = 0.05, window_s = 0.025;
        double jitter_s = 0;  ///< of the refresh instants, standard deviation
    };
    BurstSensor(double idle_w, std::uint64_t seed) : random_(seed), idle_w_(idle_w) {}

    double uniform(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
    double normal(double sd) { return sd > 0 ? std::normal_distribution(0.0, sd)(random_) : 0.0; }

    void idle(double s) { now_s_ += s; }
    void burst(const std::string& name, double s, double power_w) {
        pieces_.push_back({now_s_, now_s_ + s, power_w});
        names_.push_back(name);
        now_s_ += s;
    }

    std::vector<RegionSpan> regions() const {
        std::vector<RegionSpan> all;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            all.push_back({names_[i], nanoseconds(pieces_[i].start_s), nanoseconds(pieces_[i].end_s)});
        }
        return all;
    }
    double true_j(std::size_t region) const {
        return pieces_[region].power_w * (pieces_[region].end_s - pieces_[region].start_s);
    }
    double mean_true_j(const std::string& name) const {
        double sum = 0, n = 0;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (names_[i] == name) {
                sum += true_j(i);
                ++n;
            }
        }
        return sum / n;
    }

    /// Readings about every `poll_s`, and at every edge, until now.
    std::vector<Refresh> refreshes(const Timing& timing, double poll_s) {
        RefreshLog log({{0, nanoseconds(now_s_)}});
        poll(timing, poll_s, [&](double poll_at_s, double refreshed_s) {
            const double energy_j = seen_j(refreshed_s - timing.lag_s, timing.window_s);
            log.add(nanoseconds(poll_at_s), std::round(energy_j * 1e3) / 1e3);  // NVML counts millijoules
        });
        return log.refreshes();
    }

    /// The same of a power reading: the mean over the window. `noise_w` is drawn anew at each refresh.
    std::vector<PowerReading> power(const Timing& timing, double poll_s, double noise_w = 0) {
        std::vector<PowerReading> readings;
        double last_s = -1e9, power_w = 0;
        poll(timing, poll_s, [&](double poll_at_s, double refreshed_s) {
            if (refreshed_s != last_s) {
                last_s = refreshed_s;
                const double to_s = refreshed_s - timing.lag_s;
                power_w = (seen_j(to_s, 0) - seen_j(to_s - timing.window_s, 0)) / timing.window_s;
                power_w = std::round((power_w + normal(noise_w)) * 1e3) / 1e3;
            }
            readings.push_back({nanoseconds(poll_at_s), power_w});
        });
        return readings;
    }

  private:
    struct Piece {
        double start_s, end_s, power_w;
    };
    /// Calls `each` with the time of every reading and of the refresh that it shows.
    template <typename Each>
    void poll(const Timing& timing, double poll_s, Each each) {
        std::vector<double> polls;
        for (double t = 0; t < now_s_; t += poll_s * uniform(0.8, 1.2)) {
            polls.push_back(t);
        }
        for (const Piece& piece : pieces_) {
            polls.insert(polls.end(), {piece.start_s, piece.end_s});
        }
        std::ranges::sort(polls);
        double refreshed_s = uniform(-timing.refresh_s, 0), next_s = refreshed_s + timing.refresh_s;
        double ideal_s = next_s;
        for (const double at_s : polls) {
            while (next_s <= at_s) {
                refreshed_s = next_s;
                ideal_s += timing.refresh_s;
                next_s = std::max(refreshed_s, ideal_s + normal(timing.jitter_s));
            }
            each(at_s, refreshed_s);
        }
    }

    double seen_j(double until_s, double window_s) const {
        const auto ramp = [&](double t) {
            return t <= 0 ? 0 : t < window_s ? t * t / (2 * window_s) : t - window_s / 2;
        };
        double energy_j = 1000 + idle_w_ * (until_s - window_s / 2);
        for (const Piece& piece : pieces_) {
            energy_j +=
                (piece.power_w - idle_w_) * (ramp(until_s - piece.start_s) - ramp(until_s - piece.end_s));
        }
        return energy_j;
    }

    std::mt19937_64 random_;
    double idle_w_, now_s_ = 0;
    std::vector<Piece> pieces_;
    std::vector<std::string> names_;
};

}  // namespace joulemark::meter
