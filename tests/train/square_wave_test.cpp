// SPDX-License-Identifier: Apache-2.0
#include "loads/square_wave.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::train {
namespace {

TEST(SquareWave, DurationsStayWithinTheirShareAndAverageOut) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const SquareWave wave{.repeats = 2000, .seed = seed};
        double high_s = 0, low_s = 0;
        std::set<double> different;
        for (const Burst& burst : bursts(wave)) {
            ASSERT_GE(burst.high_s, 0.27);
            ASSERT_LE(burst.high_s, 0.63);
            ASSERT_GE(burst.low_s, 0.33);
            ASSERT_LE(burst.low_s, 0.77);
            high_s += burst.high_s / wave.repeats;
            low_s += burst.low_s / wave.repeats;
            different.insert(burst.high_s + burst.low_s);
        }
        EXPECT_NEAR(high_s, 0.45, 0.02);
        EXPECT_NEAR(low_s, 0.55, 0.02);
        EXPECT_EQ(different.size(), 2000U) << "no period comes twice";
    }
}

TEST(SquareWave, ASeedGivesTheSameBursts) {
    const auto highs = [](std::uint64_t seed) {
        std::vector<double> all;
        for (const Burst& burst : bursts({.seed = seed})) {
            all.push_back(burst.high_s);
        }
        return all;
    };
    EXPECT_EQ(highs(3), highs(3));
    EXPECT_NE(highs(3), highs(4));
    for (const Burst& burst : bursts({.vary = 0})) {
        EXPECT_EQ(burst.high_s, 0.45);
        EXPECT_EQ(burst.low_s, 0.55);
    }
}

TEST(SquareWave, OptionsAreTaken) {
    const auto wave = parse_square_wave({"--high-s", "0.3", "--low-s", "1", "--repeats", "7", "--vary", "0",
                                         "--size", "64", "--device", "cpu", "--seed", "9"});
    ASSERT_TRUE(wave);
    EXPECT_EQ(wave->high_s, 0.3);
    EXPECT_EQ(wave->low_s, 1);
    EXPECT_EQ(wave->repeats, 7);
    EXPECT_EQ(wave->vary, 0);
    EXPECT_EQ(wave->size, 64);
    EXPECT_EQ(wave->device, DeviceChoice::cpu);
    EXPECT_EQ(wave->seed, 9U);
    EXPECT_EQ(parse_square_wave({})->repeats, 60);
}

TEST(SquareWave, RefusesWhatCannotBe) {
    const std::vector<std::vector<std::string>> refused{
        {"--high-s", "0"},    {"--high-s", "nan"}, {"--low-s", "-1"},     {"--vary", "1"}, {"--repeats", "0"},
        {"--repeats", "2.5"}, {"--size", "0"},     {"--device", "quick"}, {"--what"},      {"resnet50"}};
    for (const auto& words : refused) {
        try {
            parse_square_wave(words);
            ADD_FAILURE() << words.front();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            EXPECT_NE(std::string(error.what()).find(words.front()), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace joulemark::train
