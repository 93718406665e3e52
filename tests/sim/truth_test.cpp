// SPDX-License-Identifier: Apache-2.0
#include "sim/truth.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::sim {
namespace {

const Profile& v100 = *find_profile("v100");

Operating unlimited(const Truth& truth) {
    return Operating::unlimited(truth, v100);
}

TEST(Truth, UnlimitedSingleGpuTakesTheGivenTime) {
    const Truth truth(v100);
    EXPECT_DOUBLE_EQ(epoch_time_s(truth, v100, unlimited(truth)), truth.epoch_time_s);
    EXPECT_DOUBLE_EQ(natural_power_w(truth, v100, unlimited(truth)), truth.full_power_w);
}

TEST(Truth, ExponentsAreSlopesOfTheLogarithms) {
    const Truth truth = parse_truth(
        R"({"gpu_exponent": 0.8, "cap_exponent": 0.5, "clock_exponent": 0.4, "batch_exponent": 0.1})", "test",
        v100);
    const auto slope = [&](double Operating::*axis, double to) {
        const Operating from = unlimited(truth);
        Operating at = from;
        at.*axis = to;
        return std::log(epoch_time_s(truth, v100, at) / epoch_time_s(truth, v100, from)) /
               std::log(to / (from.*axis));
    };
    EXPECT_NEAR(slope(&Operating::gpus, 64), -0.8, 1e-12);
    EXPECT_NEAR(slope(&Operating::power_cap_w, 100), -0.5, 1e-12);
    EXPECT_NEAR(slope(&Operating::sm_clock_mhz, 135), -0.4, 1e-12);
    EXPECT_NEAR(slope(&Operating::local_batch, 32), -0.1, 1e-12);
    EXPECT_NEAR(slope(&Operating::samples, 1000), 1, 1e-12);
}

TEST(Truth, FloorIsWhatRemainsOnInfinitelyManyGpus) {
    const Truth truth = parse_truth(R"({"floor_s": 12})", "test", v100);
    Operating at = unlimited(truth);
    at.gpus = 1e12;
    EXPECT_NEAR(epoch_time_s(truth, v100, at), 12, 1e-3);
}

TEST(Truth, BeyondTheKneeALimitCostsNothing) {
    const Truth truth = parse_truth(R"({"cap_knee_w": 200, "clock_knee_mhz": 1000})", "test", v100);
    Operating at = unlimited(truth);
    const double free_s = epoch_time_s(truth, v100, at);
    at.power_cap_w = 200;
    at.sm_clock_mhz = 1000;
    EXPECT_DOUBLE_EQ(epoch_time_s(truth, v100, at), free_s);
    at.power_cap_w = 100;
    EXPECT_NEAR(epoch_time_s(truth, v100, at) / free_s, std::pow(0.5, -truth.cap_exponent), 1e-12);
}

TEST(Truth, PowerIsTheCapWhereTheCapBindsAndNeverAbove) {
    const Truth truth(v100);
    for (const double gpus : {1.0, 8.0}) {
        for (const double cap : {100.0, 150.0, 250.0}) {
            for (const double clock : {135.0, 735.0, 1380.0}) {
                const Operating at{gpus, cap, clock, 128, 1e6};
                const double natural = natural_power_w(truth, v100, at);
                const double power = phase_power_w(truth, v100, at, phases(gpus).front());
                EXPECT_DOUBLE_EQ(power, natural > cap ? cap : natural);
                for (const Phase& phase : phases(gpus)) {
                    EXPECT_LE(phase_power_w(truth, v100, at, phase), cap);
                }
            }
        }
    }
}

TEST(Truth, PhasesCoverTheEpoch) {
    for (const double gpus : {1.0, 2.0, 64.0}) {
        double sum = 0;
        for (const Phase& phase : phases(gpus)) {
            EXPECT_GT(phase.fraction, 0);
            sum += phase.fraction;
        }
        EXPECT_NEAR(sum, 1, 1e-12);
    }
}

TEST(Truth, NoiseHasTheGivenSpreadAndUnbiasedLogarithm) {
    const Truth truth =
        parse_truth(R"({"noise_pct": 3, "run_noise_pct": 4, "power_noise_pct": 2})", "test", v100);
    constexpr int n = 4000;
    double sum = 0, squares = 0, power_squares = 0;
    for (int run = 0; run < n; ++run) {
        const Noise with = noise(truth, 7, static_cast<std::uint64_t>(run), 0);
        sum += std::log(with.time);
        squares += std::pow(std::log(with.time), 2);
        power_squares += std::pow(std::log(with.power), 2);
    }
    EXPECT_NEAR(sum / n, 0, 4 * 0.05 / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), 0.05, 0.05 * 4 / std::sqrt(2 * n));
    EXPECT_NEAR(std::sqrt(power_squares / n), 0.02, 0.02 * 4 / std::sqrt(2 * n));
}

TEST(Truth, NoiseDependsOnSeedRunAndEpochOnly) {
    const Truth truth(v100);
    EXPECT_EQ(noise(truth, 1, 2, 3).time, noise(truth, 1, 2, 3).time);
    EXPECT_NE(noise(truth, 1, 2, 3).time, noise(truth, 2, 2, 3).time);
    EXPECT_NE(noise(truth, 1, 2, 3).time, noise(truth, 1, 3, 3).time);
    EXPECT_NE(noise(truth, 1, 2, 3).time, noise(truth, 1, 2, 4).time);
    EXPECT_EQ(noise(truth, 1, 2, 3).power, noise(truth, 1, 2, 4).power);
}

TEST(Truth, ErrorFallsWithEpochsAndRisesBeyondTheBatchKnee) {
    const Truth truth = parse_truth(R"({"quality_noise": 0})", "test", v100);
    EXPECT_GT(quality(truth, 256, 0, 0).top1_error, quality(truth, 256, 0, 30).top1_error);
    EXPECT_NEAR(quality(truth, 256, 0, 1000).top1_error, truth.final_error, 1e-9);
    EXPECT_DOUBLE_EQ(quality(truth, 256, 0, 50).top1_error, quality(truth, 8192, 0, 50).top1_error);
    EXPECT_NEAR(quality(truth, 32768, 0, 1000).top1_error, truth.final_error + 2 * truth.batch_error, 1e-9);
}

TEST(Truth, BadInputIsNamed) {
    const auto message = [](const char* json) {
        try {
            parse_truth(json, "study", v100);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_NE(message(R"({"gpu_exponnet": 0.9})").find("\"gpu_exponnet\""), std::string::npos);
    EXPECT_NE(message(R"({"noise_pct": "much"})").find("\"noise_pct\""), std::string::npos);
    EXPECT_NE(message(R"({"epoch_time_s": 0})").find("above 0"), std::string::npos);
    EXPECT_NE(message("[1]").find("not a JSON object"), std::string::npos);
    EXPECT_NE(message("{").find("not a JSON object"), std::string::npos);
}

TEST(Profile, ClocksIncludeThoseOfTheStudies) {
    const auto clocks = v100.sm_clocks();
    EXPECT_EQ(clocks.front(), 1380u);
    EXPECT_EQ(clocks.back(), 135u);
    EXPECT_NE(std::ranges::find(clocks, 735u), clocks.end());
    EXPECT_TRUE(std::ranges::is_sorted(clocks, std::greater{}));
    EXPECT_EQ(find_profile("H200")->sm_clocks().size(), 110u);
    EXPECT_EQ(find_profile("P100"), nullptr);
    for (const Profile& profile : profiles()) {
        EXPECT_NE(profile.name.find("Simulated"), std::string_view::npos);
    }
}

}  // namespace
}  // namespace joulemark::sim
