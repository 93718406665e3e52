// SPDX-License-Identifier: Apache-2.0
// A whole simulated study at the level of results, 200 pinned seeds: analysis must find what was injected.
#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"
#include "stats/summary.h"

namespace joulemark::analysis {
namespace {

constexpr int injected_studies = 200;
constexpr int injected_repeats = 5;
constexpr double injected_noise = 0.01;  // of the logarithm of one run's time
const std::map<std::string, double> exponents{
    {"gpus", -0.93}, {"power_cap_w", -0.55}, {"sm_clock_mhz", -0.7}};

double epoch_seconds(double gpus, double cap, double clock, double floor) {
    return 3600 * std::pow(gpus / 4, exponents.at("gpus")) *
               std::pow(cap / 250, exponents.at("power_cap_w")) *
               std::pow(clock / 1380, exponents.at("sm_clock_mhz")) +
           floor;
}

std::vector<store::RunRecord> study(std::uint64_t seed, double floor) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, injected_noise);
    std::vector<store::RunRecord> records;
    const auto add = [&](int gpus, int cap, int clock) {
        for (int repeat = 0; repeat < injected_repeats; ++repeat) {
            const double seconds = epoch_seconds(gpus, cap, clock, floor) * std::exp(normal(random));
            store::RunRecord record = run_record(std::to_string(records.size()),
                                                 {{"workload", "resnet50"},
                                                  {"gpus", gpus},
                                                  {"power_cap_w", cap},
                                                  {"sm_clock_mhz", clock},
                                                  {"local_batch", 128}},
                                                 seconds, 0);
            records.push_back(std::move(record));
        }
    };
    for (const int gpus : {2, 4, 8, 16, 32, 64}) {
        add(gpus, 250, 1380);
    }
    for (const int cap : {100, 140, 175, 210}) {
        add(4, cap, 1380);
    }
    for (const int clock : {135, 450, 765, 1080}) {
        add(4, 250, clock);
    }
    return records;
}

TEST(InjectedLaws, ExponentsLieInTheirIntervals) {
    std::map<std::string, int> hits;
    std::map<std::string, std::vector<double>> half_widths;
    const auto count = [&](const Law& law, stats::Form form, const std::string& name) {
        if (law.response == "epoch_time_s" && law.fit && law.fit->form == form) {
            const double truth = exponents.at(law.factor);
            const stats::Interval interval = *law.fit->parameters[1].ci95;
            hits[name] += interval.contains(truth);
            half_widths[name].push_back(interval.half_width() / std::abs(truth));
        }
    };
    for (std::uint64_t seed = 1; seed <= injected_studies; ++seed) {
        for (const Law& law : analyze(study(seed, 0)).laws) {
            count(law, stats::Form::power, law.factor);
        }
        for (const Law& law : analyze(study(seed + injected_studies, 40)).laws) {
            if (law.factor == "gpus") {
                count(law, stats::Form::power_floor, "gpus, with floor");
            }
        }
    }
    ASSERT_EQ(hits.size(), 4u);
    for (const auto& [name, inside] : hits) {
        const double width = stats::median(half_widths[name]);
        std::printf("%-17s injected exponent in %d of %d intervals, median half-width %.2f %%\n",
                    name.c_str(), inside, injected_studies, 100 * width);
        ASSERT_EQ(half_widths[name].size(), static_cast<std::size_t>(injected_studies)) << name;
        EXPECT_GE(inside, 182) << name;
        EXPECT_LE(inside, 198) << name;
        EXPECT_LE(width, 0.05) << name;
    }
}

}  // namespace
}  // namespace joulemark::analysis
