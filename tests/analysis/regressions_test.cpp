// SPDX-License-Identifier: Apache-2.0
#include "analysis/regressions.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

const Regression* regression_of(const Model& model, const std::string& response) {
    const auto found = std::ranges::find(model.regressions, response, &Regression::response);
    return found == model.regressions.end() ? nullptr : &*found;
}

stats::Estimate term(const Regression& regression, const std::string& name) {
    for (const auto& one : regression.terms) {
        if (one.name == name) {
            return one.estimate;
        }
    }
    ADD_FAILURE() << "no term " << name;
    return {};
}

/// Power per GPU = 90 W + 2e-5 x samples/h + 8e-4 x updates/h - 0.2 W per GPU (+ 60 W on H100), as rows.
std::vector<store::RunRecord> power_study(const std::vector<int>& local_batches, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 0.5);
    std::vector<store::RunRecord> records;
    for (const char* hardware : {"A100", "H100"}) {
        const bool fast = hardware == std::string("H100");
        for (const int gpus : {4, 16, 64}) {
            for (const int local : local_batches) {
                const double step_s =
                    (0.05 + 0.9e-3 * local) * (fast ? 0.6 : 1) * (1 + 0.01 * std::log2(gpus));
                const double updates = 3600 / step_s;
                const double samples = updates * local;
                const double power = 90 + 2e-5 * samples + 8e-4 * updates - 0.2 * gpus + (fast ? 60 : 0);
                const double hours = 10;
                records.push_back(
                    imported_record(std::to_string(records.size()),
                                    {{"workload", "resnet50"},
                                     {"hardware", hardware},
                                     {"gpus", gpus},
                                     {"local_batch", local},
                                     {"epochs", 1},
                                     {"dataset_samples", samples * gpus * hours}},
                                    {{"gpu_hours", hours * gpus},
                                     {"energy_j", (power + noise(random)) * hours * gpus * 3600}}));
            }
        }
    }
    return records;
}

TEST(PowerRegression, ConstantLocalBatchIsRefusedWithTheReason) {
    const Model model = analyze(power_study({256}, 1));
    const Regression* power = regression_of(model, "power_per_gpu_w");
    ASSERT_NE(power, nullptr);
    ASSERT_FALSE(power->refused.empty());
    EXPECT_EQ(power->refused[0].terms,
              (std::vector<std::string>{"samples_per_gpu_hour", "updates_per_gpu_hour"}));
    EXPECT_NE(power->refused[0].reason.find("local batch does not vary"), std::string::npos);
    EXPECT_TRUE(std::ranges::none_of(power->terms,
                                     [](const auto& one) { return one.name == "updates_per_gpu_hour"; }));
}

TEST(PowerRegression, VaryingLocalBatchRecoversInjectedEffects) {
    std::map<std::string, double> truth{{"samples_per_gpu_hour", 2e-5},
                                        {"updates_per_gpu_hour", 8e-4},
                                        {"gpus", -0.2},
                                        {"hardware=H100", 60},
                                        {"intercept", 90}};
    std::map<std::string, int> hits;
    constexpr int studies = 200;
    for (int seed = 1; seed <= studies; ++seed) {
        const Model model = analyze(power_study({16, 64, 256}, static_cast<std::uint64_t>(seed)));
        const Regression* power = regression_of(model, "power_per_gpu_w");
        ASSERT_NE(power, nullptr);
        EXPECT_TRUE(power->refused.empty());
        for (const auto& [name, value] : truth) {
            hits[name] += term(*power, name).ci95->contains(value);
        }
    }
    for (const auto& [name, inside] : hits) {
        EXPECT_GE(inside, 180) << name;
        EXPECT_LE(inside, 199) << name;
    }
}

std::vector<store::RunRecord> cap_by_clock(bool factorial, double interaction) {
    std::vector<store::RunRecord> records;
    for (const int cap : {100, 150, 200, 250}) {
        for (const int clock : {735, 1060, 1380}) {
            if (factorial || cap == 250 || clock == 1380) {
                const double u = std::log(cap / 250.0), v = std::log(clock / 1380.0);
                records.push_back(
                    run_record(std::to_string(records.size()),
                               {{"workload", "x"}, {"power_cap_w", cap}, {"sm_clock_mhz", clock}},
                               100 * std::exp(-0.5 * u - 0.7 * v + interaction * u * v)));
            }
        }
    }
    return records;
}

TEST(FactorEffects, OfAFactorialStudyAreIsolated) {
    const Model model = analyze(cap_by_clock(true, 0));
    const Regression* time = regression_of(model, "log epoch_time_s");
    ASSERT_NE(time, nullptr);
    EXPECT_NEAR(term(*time, "power_cap_w").value, -0.5, 1e-9);
    EXPECT_NEAR(term(*time, "sm_clock_mhz").value, -0.7, 1e-9);
    EXPECT_NEAR(term(*time, "power_cap_w x sm_clock_mhz").value, 0, 1e-9);
    for (const auto& one : time->terms) {
        if (one.vif) {
            EXPECT_NEAR(*one.vif, 1, 1e-9) << one.name;  // a balanced factorial is orthogonal
        }
    }
}

TEST(FactorEffects, ABatchThatFollowsIsNoFactor) {
    std::vector<store::RunRecord> records;
    for (const int cap : {100, 150, 200, 250}) {
        for (const int local : {32, 64, 128}) {
            records.push_back(
                run_record(std::to_string(records.size()),
                           {{"workload", "x"}, {"gpus", 2}, {"power_cap_w", cap}, {"local_batch", local}},
                           1e5 * std::pow(cap, -0.5) * std::pow(local, -0.2)));
        }
    }
    const Model model = analyze(records);
    const Regression* time = regression_of(model, "log epoch_time_s");
    ASSERT_NE(time, nullptr);
    ASSERT_EQ(time->terms.size(), 4u);  // intercept, cap, local batch, their interaction
    EXPECT_NEAR(term(*time, "local_batch").value, -0.2, 1e-9);
    ASSERT_EQ(time->refused.size(), 1u);
    EXPECT_EQ(time->refused[0].terms, std::vector<std::string>{"global_batch"});
}

TEST(FactorEffects, InteractionsAreFound) {
    const Model model = analyze(cap_by_clock(true, 0.4));
    EXPECT_NEAR(term(*regression_of(model, "log epoch_time_s"), "power_cap_w x sm_clock_mhz").value, 0.4,
                1e-9);
}

TEST(FactorEffects, OneFactorDesignsRefuseInteractions) {
    const Model model = analyze(cap_by_clock(false, 0.4));
    const Regression* time = regression_of(model, "log epoch_time_s");
    ASSERT_NE(time, nullptr);
    ASSERT_EQ(time->refused.size(), 1u);
    EXPECT_EQ(time->refused[0].terms, std::vector<std::string>{"power_cap_w x sm_clock_mhz"});
    EXPECT_NE(time->refused[0].reason.find("full-factorial"), std::string::npos);
}

TEST(FactorEffects, FactorsThatAlwaysMoveTogetherAreRefused) {
    std::vector<store::RunRecord> records;
    for (const int step : {1, 2, 3, 4, 5}) {
        records.push_back(run_record(
            std::to_string(step),
            {{"workload", "x"}, {"power_cap_w", 50 * step}, {"sm_clock_mhz", 300 * step}}, 100.0 / step));
    }
    const Model model = analyze(records);
    const Regression* time = regression_of(model, "log epoch_time_s");
    ASSERT_NE(time, nullptr);
    EXPECT_TRUE(std::ranges::any_of(time->refused, [](const auto& refusal) {
        return refusal.terms == std::vector<std::string>{"sm_clock_mhz"};
    }));
}

}  // namespace
}  // namespace joulemark::analysis
