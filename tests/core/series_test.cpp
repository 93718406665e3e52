// SPDX-License-Identifier: Apache-2.0
#include "core/series.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Sample {
    std::int64_t time;
    double value;
};

struct Case {
    std::vector<Sample> samples;
    std::vector<std::pair<std::int64_t, std::int64_t>> windows;
};

/// Small integer times, so that samples fall on edges, edges coincide and brute force can take every step.
Case random_case(std::mt19937& random, bool counter) {
    Case made;
    std::int64_t time = static_cast<std::int64_t>(random() % 20);
    double total = 1e6;
    for (auto n = 1 + random() % 40; n > 0; --n) {
        const double step = static_cast<double>(random() % 100);
        total = counter && random() % 30 == 0 ? 0 : total + step;
        made.samples.push_back({time, random() % 10 == 0 ? nan : (counter ? total : step)});
        time += 1 + static_cast<std::int64_t>(random() % 9);
    }
    for (auto n = 1 + random() % 6; n > 0; --n) {
        const auto start = static_cast<std::int64_t>(random() % 150);
        made.windows.emplace_back(start, start + static_cast<std::int64_t>(random() % 80));
    }
    return made;
}

Edges edges_of(const Case& of) {
    std::vector<std::int64_t> times;
    for (const auto& [start, end] : of.windows) {
        times.insert(times.end(), {start, end});
    }
    return Edges(times);
}

/// One nanosecond after the other.
GaugeTotals gauge_by_force(const Case& of, std::int64_t start, std::int64_t end, std::int64_t gap,
                           Between between) {
    GaugeTotals totals;
    for (std::size_t i = 0; i < of.samples.size(); ++i) {
        const auto [time, value] = of.samples[i];
        if (time >= start && time <= end && !std::isnan(value)) {
            totals.add({.samples = 1, .sum = value, .minimum = value, .maximum = value});
        }
        if (i == 0 || time - of.samples[i - 1].time > gap || std::isnan(value + of.samples[i - 1].value)) {
            continue;
        }
        const auto [from, from_value] = of.samples[i - 1];
        const double slope = (value - from_value) / static_cast<double>(time - from);
        for (std::int64_t t = std::max(from, start); t < std::min(time, end); ++t) {
            const double middle = static_cast<double>(t - from) + 0.5;
            totals.integral += (between == Between::linear ? from_value + slope * middle : from_value) * 1e-9;
            ++totals.covered_ns;
        }
    }
    return totals;
}

TEST(GaugeSeries, AgreesWithBruteForceOnAnyWindows) {
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        const Case made = random_case(random, false);
        const Edges edges = edges_of(made);
        const auto between = round % 2 == 0 ? Between::linear : Between::hold;
        GaugeSeries series(edges, 6, between);
        for (const auto& [time, value] : made.samples) {
            ASSERT_TRUE(series.add(time, value));
        }
        for (const auto& [start, end] : made.windows) {
            const GaugeTotals expected = gauge_by_force(made, start, end, 6, between);
            const GaugeTotals totals = series.over(start, end);
            ASSERT_EQ(totals.covered_ns, expected.covered_ns) << round;
            ASSERT_NEAR(totals.integral, expected.integral, 1e-18 + 1e-12 * std::abs(expected.integral))
                << round;
            ASSERT_EQ(totals.samples, expected.samples) << round;
            ASSERT_EQ(totals.sum, expected.sum) << round;
            ASSERT_EQ(totals.minimum, expected.minimum) << round;
            ASSERT_EQ(totals.maximum, expected.maximum) << round;
        }
    }
}

TEST(GaugeSeries, WeighsUnevenSamplesByTimeAndLeavesGapsOut) {
    const Edges edges({0, 10 * ns_per_s});
    GaugeSeries series(edges, 3 * ns_per_s);
    series.add(0, 100);
    series.add(1 * ns_per_s, 100);
    series.add(1 * ns_per_s + 1000, 500);  // a burst of samples must not pull the mean
    series.add(2 * ns_per_s, 500);
    series.add(6 * ns_per_s, 300);  // 4 s later: not covered
    series.add(7 * ns_per_s, 300);
    const GaugeTotals totals = series.over(0, 10 * ns_per_s);
    EXPECT_EQ(totals.covered_ns, 3 * ns_per_s);
    EXPECT_NEAR(totals.integral, 900, 1e-3);
    EXPECT_NEAR(totals.mean(), 300, 1e-3);
    EXPECT_EQ(totals.samples, 6);
    EXPECT_EQ(totals.maximum, 500);
}

TEST(GaugeSeries, IgnoresSamplesOutOfOrderAndSaysSo) {
    const Edges edges({0, 10});
    GaugeSeries series(edges, 100);
    EXPECT_TRUE(series.add(5, 1));
    EXPECT_TRUE(series.add(5, 9)) << "of one instant the first counts";
    EXPECT_FALSE(series.add(3, 9));
    EXPECT_EQ(series.over(0, 10).samples, 1);
    EXPECT_TRUE(std::isnan(series.over(0, 10).mean()));
}

TEST(GaugeSeries, KeepsNanosecondsAfterWeeksOfUptime) {
    const std::int64_t month = 30LL * 86400 * ns_per_s;
    const Edges edges({month, month + 1000});
    GaugeSeries series(edges, ns_per_s);
    series.add(month - 500, 200);
    series.add(month + 1500, 200);
    EXPECT_EQ(series.over(month, month + 1000).covered_ns, 1000);
    EXPECT_NEAR(series.over(month, month + 1000).integral, 200e-6, 1e-15);
}

/// The counter's value at any instant, with resets undone.
struct Line {
    std::vector<Sample> points;
    std::vector<std::pair<std::int64_t, std::int64_t>> resets;

    explicit Line(const std::vector<Sample>& samples) {
        double offset = 0;
        double raw = 0;
        for (const auto& [time, value] : samples) {
            if (std::isnan(value)) {
                continue;
            }
            if (!points.empty() && value < raw) {
                offset += raw - value;
                resets.emplace_back(points.back().time, time);
            }
            raw = value;
            points.push_back({time, value + offset});
        }
    }
    double at(std::int64_t time) const {
        const auto after = std::ranges::lower_bound(points, time, {}, &Sample::time);
        if (after == points.end()) {
            return points.back().value;
        }
        if (after == points.begin() || after->time == time) {
            return after->value;
        }
        const auto before = after - 1;
        return before->value + (after->value - before->value) * static_cast<double>(time - before->time) /
                                   static_cast<double>(after->time - before->time);
    }
    std::int64_t nearest(std::int64_t time) const {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const Sample& point : points) {
            least = std::min(least, std::abs(point.time - time));
        }
        return least;
    }
};

TEST(CounterSeries, AgreesWithBruteForceOnAnyWindows) {
    std::mt19937 random(2);
    for (int round = 0; round < 3000; ++round) {
        const Case made = random_case(random, true);
        const Edges edges = edges_of(made);
        CounterSeries series(edges);
        for (const auto& [time, value] : made.samples) {
            ASSERT_TRUE(series.add(time, value));
        }
        const Line line(made.samples);
        for (const auto& [start, end] : made.windows) {
            const CounterTotals totals = series.over(start, end);
            if (line.points.empty()) {
                ASSERT_EQ(totals.samples, 0);
                continue;
            }
            ASSERT_NEAR(totals.difference, line.at(end) - line.at(start), 1e-6) << round;
            const std::int64_t first = line.points.front().time, last = line.points.back().time;
            ASSERT_EQ(totals.covered_ns,
                      std::max<std::int64_t>(0, std::min(end, last) - std::max(start, first)));
            ASSERT_EQ(totals.samples, std::ranges::count_if(line.points, [&](const Sample& point) {
                          return point.time >= start && point.time <= end;
                      }));
            ASSERT_EQ(totals.start_distance_ns, line.nearest(start)) << round;
            ASSERT_EQ(totals.end_distance_ns, line.nearest(end)) << round;
            std::int64_t resets = 0, reset_ns = 0;
            for (const auto& [before, after] : line.resets) {
                if (std::max(before, start) < std::min(after, end)) {
                    ++resets;
                    reset_ns += after - before;
                }
            }
            ASSERT_EQ(totals.resets, resets) << round << " " << start << " " << end;
            ASSERT_EQ(totals.reset_ns, reset_ns) << round << " " << start << " " << end;
        }
    }
}

TEST(CounterSeries, BridgesFailedReads) {
    const Edges edges({0, 100});
    CounterSeries series(edges);
    series.add(0, 1000);
    series.add(50, nan);
    series.add(100, 1600);
    const CounterTotals totals = series.over(0, 100);
    EXPECT_EQ(totals.difference, 600);
    EXPECT_EQ(totals.covered_ns, 100);
    EXPECT_EQ(totals.samples, 2);
    EXPECT_EQ(totals.resets, 0);
}

TEST(GaugeSeries, TellsHowMuchOfTheTimeNoSampleShows) {
    const Edges edges({0, 5 * ns_per_s, 20 * ns_per_s});
    GaugeSeries series(edges, 30 * ns_per_s, Between::linear, ns_per_s);
    for (const int t : {0, 1, 2, 12, 20}) {
        series.add(t * ns_per_s, 100);
    }
    EXPECT_EQ(series.over(0, 20 * ns_per_s).unseen_ns, (9 + 7) * ns_per_s);
    EXPECT_NEAR(seconds(series.over(0, 5 * ns_per_s).unseen_ns), 3 * 0.9, 1e-9);
}

TEST(CounterSeries, TellsHowLongItStoodStill) {
    const auto at = [](int seconds) { return seconds * ns_per_s; };
    const Edges times({at(0), at(4), at(9), at(11), at(20)});
    CounterSeries series(times);
    for (int t = 0; t <= 20; ++t) {  // it stands from 3 s to 10 s, and from 15 s
        series.add(at(t), t < 3 ? t : t < 10 ? 3 : std::min(t, 15));
    }
    const CounterTotals whole = series.over(at(0), at(20));
    EXPECT_EQ(whole.still_ns, at(7));
    EXPECT_EQ(whole.start_age_ns, 0);
    EXPECT_EQ(whole.end_age_ns, at(5));
    const CounterTotals inside = series.over(at(4), at(9));
    EXPECT_EQ(inside.still_ns, 0);
    EXPECT_EQ(inside.start_age_ns, at(1));
    EXPECT_EQ(inside.end_age_ns, at(6));
    EXPECT_EQ(series.over(at(11), at(20)).still_ns, 0);
    EXPECT_EQ(series.over(at(11), at(20)).start_age_ns, 0);
}

}  // namespace
}  // namespace joulemark
