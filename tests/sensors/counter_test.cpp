// SPDX-License-Identifier: Apache-2.0
#include "sensors/counter.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "core/units.h"

namespace joulemark::sensors {
namespace {

constexpr std::uint64_t rapl_modulus = 262'143'328'851;  // microjoules: 262 kJ

CounterModel rapl() {
    return {.modulus = rapl_modulus, .units_per_joule = 1e6, .max_power_w = 1000, .min_power_w = 0.1};
}
CounterModel nvml() {
    return {.modulus = 0, .units_per_joule = 1e3, .max_power_w = 2800, .min_power_w = 0};
}

std::int64_t at(double s) {
    return nanoseconds(s);
}

TEST(Counter, counts_from_the_first_reading) {
    Counter counter(nvml());
    EXPECT_EQ(counter.update(at(5), 123'456'789), 0);
    EXPECT_EQ(counter.update(at(6), 123'456'789 + 250'000), 250);
    EXPECT_EQ(counter.events(), CounterEvents{});
}

TEST(Counter, starting_at_time_zero_is_a_start) {
    Counter counter(nvml());
    EXPECT_EQ(counter.update(0, 0), 0);
    EXPECT_EQ(counter.update(at(1), 100'000), 100);
}

TEST(Counter, one_wrap_is_exact) {
    Counter counter(rapl());
    counter.update(at(0), rapl_modulus - 30'000'000);
    EXPECT_EQ(counter.update(at(1), 70'000'000), 100);
    EXPECT_EQ(counter.events().wraps, 1U);
}

TEST(Counter, two_wraps_between_reads_are_unknowable_and_the_total_a_lower_bound) {
    Counter counter(rapl());
    counter.update(at(0), 1'000'000);
    EXPECT_TRUE(std::isnan(counter.update(at(600), 51'000'000)));  // 600 s at up to 1 kW: 0, 1 or 2 wraps
    EXPECT_EQ(counter.events().unknowable, 1U);
    EXPECT_EQ(counter.events().wraps, 0U);
    EXPECT_EQ(counter.update(at(601), 101'000'000), 100);  // 50 J at least, then 50 J
}

TEST(Counter, a_failed_read_is_a_gap_and_never_a_range) {
    Counter counter(rapl());
    counter.update(at(0), 200'000'000);
    EXPECT_TRUE(std::isnan(counter.update(at(1), std::nullopt)));
    EXPECT_EQ(counter.update(at(2), 300'000'000), 100);
    EXPECT_EQ(counter.events().failed_reads, 1U);
    EXPECT_EQ(counter.events().wraps, 0U);
}

TEST(Counter, failing_at_first_starts_at_the_first_good_reading) {
    Counter counter(rapl());
    EXPECT_TRUE(std::isnan(counter.update(at(0), std::nullopt)));
    EXPECT_EQ(counter.update(at(1), 200'000'000), 0);
}

TEST(Counter, a_fall_where_no_wrap_is_plausible_is_a_reset) {
    Counter counter(rapl());
    counter.update(at(0), 100'000'000);
    EXPECT_EQ(counter.update(at(1), 150'000'000), 50);
    EXPECT_EQ(counter.update(at(2), 10), 0);  // as a wrap: 262 kJ in 1 s
    EXPECT_EQ(counter.events().resets, 1U);
    EXPECT_EQ(counter.events().wraps, 0U);
    EXPECT_EQ(counter.update(at(3), 20'000'010), 20) << "the total starts again, for all to see";
}

TEST(Counter, a_64_bit_counter_that_falls_was_reset) {
    Counter counter(nvml());
    counter.update(at(0), 5'000'000);
    EXPECT_EQ(counter.update(at(1), 0), -1e-3) << "it had not risen: a unit below is a fall";
    EXPECT_EQ(counter.events().resets, 1U);
    EXPECT_DOUBLE_EQ(counter.update(at(2), 400'000), 400 - 1e-3);
}

TEST(Counter, a_reset_before_the_first_rise_is_a_fall_too) {
    Counter counter(nvml());
    EXPECT_EQ(counter.update(at(0), 5'000'000), 0);
    const double after = counter.update(at(1), 10'000);
    EXPECT_LT(after, 0);
    const double again = counter.update(at(2), 0);
    EXPECT_LT(again, after);
    EXPECT_DOUBLE_EQ(counter.update(at(3), 400'000) - again, 400);
    EXPECT_EQ(counter.events().resets, 2U);
}

TEST(Counter, a_jump_that_no_power_explains_is_not_energy) {
    Counter counter(nvml());
    counter.update(at(0), 0);
    EXPECT_EQ(counter.update(at(1), 1'000'000'000), -1e-3);  // 1 MJ in a second
    EXPECT_EQ(counter.events().resets, 1U);
    EXPECT_DOUBLE_EQ(counter.update(at(2), 1'000'300'000), 300 - 1e-3);
}

TEST(Counter, a_reading_beyond_the_range_does_not_wrap) {
    Counter counter(rapl());
    counter.update(at(0), rapl_modulus + 10);
    EXPECT_EQ(counter.update(at(1), 5), -1e-6);
    EXPECT_EQ(counter.events().resets, 1U);
}

TEST(Counter, frozen_while_power_is_drawn_is_a_gap_until_it_moves) {
    Counter counter(nvml());
    counter.update(at(0), 1000, 300);
    EXPECT_EQ(counter.update(at(1), 301'000, 300), 300);
    double t = 2;
    for (; t < 11; ++t) {
        EXPECT_EQ(counter.update(at(t), 301'000, 300), 300) << t;
    }
    for (; t < 60; ++t) {
        EXPECT_TRUE(std::isnan(counter.update(at(t), 301'000, 300))) << t;
    }
    EXPECT_EQ(counter.events().frozen, 1U);
    EXPECT_EQ(counter.update(at(60), 301'000 + 59 * 300'000, 300),
              60 * 300);  // it catches up: nothing is lost
}

TEST(Counter, standing_still_without_power_is_not_frozen) {
    Counter counter(nvml());
    counter.update(at(0), 1000, 0);
    EXPECT_EQ(counter.update(at(100), 1000, 0), 0);
    EXPECT_EQ(counter.events().frozen, 0U);
}

TEST(Counter, frozen_is_found_without_a_power_reading_where_the_least_power_is_known) {
    Counter counter(rapl());
    counter.update(at(0), 1000);
    EXPECT_TRUE(std::isnan(counter.update(at(11), 1000)));
    EXPECT_EQ(counter.events().frozen, 1U);
}

TEST(Counter, reading_faster_than_the_sensor_refreshes_is_no_reset) {
    Counter counter(nvml());  // refreshes every 100 ms, read every millisecond: 70 J appear within 1 ms
    double joules = 0;
    for (int ms = 0; ms < 1000; ++ms) {
        joules = counter.update(at(ms * 1e-3), static_cast<std::uint64_t>(ms / 100) * 70'000, 700);
    }
    EXPECT_EQ(joules, 630);
    EXPECT_EQ(counter.events(), CounterEvents{});
}

TEST(Counter, stays_exact_over_a_week) {
    Counter counter(rapl());
    std::uint64_t drawn = 0;
    constexpr std::uint64_t start = 77;
    counter.update(0, start);
    double joules = 0;
    for (int s = 1; s <= 7 * 86400; ++s) {
        drawn += 280'000'001;
        joules = counter.update(at(s), (start + drawn) % rapl_modulus);
    }
    EXPECT_EQ(joules, static_cast<double>(drawn) / 1e6);
    EXPECT_EQ(counter.events().wraps, (start + drawn) / rapl_modulus);
}

/// Against the energy that was really drawn, with random power, pace, wraps and failed reads.
TEST(Counter, property_equals_the_energy_drawn_whatever_the_wraps_and_failures) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random(seed);
        const std::uint64_t modulus =
            std::uniform_int_distribution<std::uint64_t>(50'000'000, 5'000'000'000)(random);
        const double max_power_w = 500;
        const double longest_s =
            static_cast<double>(modulus) / 1e6 / max_power_w;  // below it: at most one wrap
        Counter counter(
            {.modulus = modulus, .units_per_joule = 1e6, .max_power_w = max_power_w, .min_power_w = 0});
        std::uniform_real_distribution<double> power(1, max_power_w);
        std::uniform_real_distribution<double> pace(0.001, 0.4 * longest_s);
        std::bernoulli_distribution fails(0.2);
        const std::uint64_t start = std::uniform_int_distribution<std::uint64_t>(0, modulus - 1)(random);
        std::uint64_t drawn = 0;  // microjoules
        double time_s = 0;
        std::uint64_t wraps = 0;
        std::uint64_t failures = 0;
        std::uint64_t last_seen = start;
        counter.update(0, start);
        int failed_in_a_row = 0;
        for (int i = 0; i < 400; ++i) {
            const double step_s = pace(random);
            time_s += step_s;
            drawn += static_cast<std::uint64_t>(power(random) * step_s * 1e6);
            if (failed_in_a_row == 0 && fails(random)) {  // two steps together stay below longest_s
                ++failed_in_a_row;
                ++failures;
                EXPECT_TRUE(std::isnan(counter.update(at(time_s), std::nullopt)));
                continue;
            }
            failed_in_a_row = 0;
            wraps += (start + drawn) / modulus - last_seen / modulus;
            last_seen = start + drawn;
            ASSERT_EQ(counter.update(at(time_s), (start + drawn) % modulus), static_cast<double>(drawn) / 1e6)
                << "seed " << seed << " step " << i;
        }
        EXPECT_EQ(counter.events().wraps, wraps);
        EXPECT_EQ(counter.events().failed_reads, failures);
        EXPECT_EQ(counter.events().unknowable + counter.events().resets + counter.events().frozen, 0U);
    }
}

/// With resets and stretches without reads too: the total never exceeds what was drawn.
TEST(Counter, property_total_stays_below_the_energy_drawn) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random(seed);
        constexpr std::uint64_t modulus = 1'000'000'000;  // 1 kJ
        Counter counter({.modulus = modulus, .units_per_joule = 1e6, .max_power_w = 100, .min_power_w = 0});
        std::uniform_int_distribution<int> event(0, 19);
        double time_s = 0;
        std::uint64_t raw = 0;
        std::uint64_t drawn = 0;
        std::uint64_t late = 0;
        counter.update(0, raw);
        for (int i = 0; i < 300; ++i) {
            const int what = event(random);
            const double step_s = what == 0 ? 30 : 1;  // 30 s at up to 100 W: more than one range
            const auto energy = static_cast<std::uint64_t>(step_s * 1e6) * 60;
            late += what == 0 ? 1 : 0;
            time_s += step_s;
            drawn += energy;
            raw = what == 1 ? 0 : (raw + energy) % modulus;
            counter.update(at(time_s), what == 2 ? std::nullopt : std::optional(raw));
        }
        EXPECT_LE(counter.joules(), static_cast<double>(drawn) / 1e6) << "seed " << seed;
        EXPECT_EQ(counter.events().unknowable, late);
    }
}

}  // namespace
}  // namespace joulemark::sensors
