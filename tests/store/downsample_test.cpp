// SPDX-License-Identifier: Apache-2.0
#include "store/downsample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace joulemark::store {
namespace {

TEST(Downsampler, KeepsEverySampleOfAnyLengthInItsBin) {
    std::mt19937 random(3);
    for (const std::size_t count : {1u, 10u, 1024u, 1025u, 50'000u}) {
        Downsampler bins(100);
        std::vector<std::pair<std::int64_t, double>> samples;
        std::int64_t time = 5'000'000'000;
        for (std::size_t i = 0; i < count; ++i) {
            samples.emplace_back(time, static_cast<double>(random() % 1000));
            bins.add(samples.back().first, samples.back().second);
            time += 50 + static_cast<std::int64_t>(random() % 100);
        }
        bins.add(time, std::nan(""));
        ASSERT_LE(bins.bins().size(), Downsampler::limit);
        std::map<std::int64_t, Downsampler::Bin> expected;
        for (const auto& [at, value] : samples) {
            auto& bin = expected[(at - bins.start_ns()) / bins.width_ns()];
            bin.minimum = bin.samples == 0 ? value : std::min(bin.minimum, value);
            bin.maximum = bin.samples == 0 ? value : std::max(bin.maximum, value);
            bin.sum += value;
            ++bin.samples;
        }
        for (std::size_t i = 0; i < bins.bins().size(); ++i) {
            const auto& bin = bins.bins()[i];
            const auto& want = expected[static_cast<std::int64_t>(i)];
            ASSERT_EQ(bin.samples, want.samples);
            ASSERT_EQ(bin.sum, want.sum);
            ASSERT_EQ(bin.minimum, want.minimum);
            ASSERT_EQ(bin.maximum, want.maximum);
        }
        if (count > Downsampler::limit) {
            EXPECT_GE(bins.bins().size(), Downsampler::limit / 2 - 1) << "no coarser than needed";
        }
    }
}

TEST(Downsampler, SurvivesALongSilence) {
    Downsampler bins(1);
    bins.add(0, 1);
    bins.add(std::int64_t{1} << 60, 3);
    ASSERT_LE(bins.bins().size(), Downsampler::limit);
    EXPECT_EQ(bins.bins().front().samples, 1);
    EXPECT_EQ(bins.bins().back().maximum, 3);
}

}  // namespace
}  // namespace joulemark::store
