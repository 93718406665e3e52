// SPDX-License-Identifier: Apache-2.0
#include "analysis/laws.h"

#include <cmath>

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

std::vector<const Law*> laws_over(const Model& model, const std::string& factor, const std::string& response,
                                  const std::string& scaling = "") {
    std::vector<const Law*> found;
    for (const Law& law : model.laws) {
        if (law.factor == factor && law.response == response && law.scaling == scaling) {
            found.push_back(&law);
        }
    }
    return found;
}

std::vector<store::RunRecord> over_gpus(const std::vector<int>& gpus, const std::string& fixed_batch,
                                        int repeats = 2) {
    std::vector<store::RunRecord> records;
    for (const int n : gpus) {
        for (int repeat = 0; repeat < repeats; ++repeat) {
            json factors{{"workload", "resnet50"}, {"gpus", n}, {"dataset_samples", 1000}};
            factors[fixed_batch] = 256;
            const double seconds = 900 * std::pow(n, -0.9) * (1 + 0.01 * repeat);
            records.push_back(
                run_record(std::to_string(n) + "-" + std::to_string(repeat), factors, seconds, n));
        }
    }
    return records;
}

TEST(Laws, StrongScalingHoldsTheGlobalBatch) {
    const Model model = analyze(over_gpus({1, 2, 4, 8, 16}, "global_batch"));
    const auto strong = laws_over(model, "gpus", "epoch_time_s", "strong");
    ASSERT_FALSE(strong.empty());
    EXPECT_TRUE(laws_over(model, "gpus", "epoch_time_s", "weak").empty());
    EXPECT_FALSE(strong[0]->group.contains("gpus"));
    EXPECT_FALSE(strong[0]->group.contains("local_batch"));  // it follows
    EXPECT_EQ(strong[0]->group["global_batch"], 256);
    EXPECT_EQ(strong[0]->n_levels, 5u);
    EXPECT_EQ(strong[0]->n_runs, 10u);
    const auto selected = std::ranges::find_if(strong, [](const Law* law) { return law->selected; });
    ASSERT_NE(selected, strong.end());
    EXPECT_EQ((*selected)->fit->form, stats::Form::power);
    EXPECT_NEAR((*selected)->fit->parameters[1].value, -0.9, 1e-9);
}

TEST(Laws, WeakScalingHoldsTheLocalBatch) {
    const Model model = analyze(over_gpus({1, 2, 4, 8}, "local_batch"));
    EXPECT_FALSE(laws_over(model, "gpus", "epoch_time_s", "weak").empty());
    EXPECT_TRUE(laws_over(model, "gpus", "epoch_time_s", "strong").empty());
    ASSERT_EQ(model.scaling.size(), 1u);
    const ScalingTable& table = model.scaling[0];
    EXPECT_EQ(table.scaling, "weak");
    EXPECT_EQ(table.baseline_gpus, 1);
    EXPECT_NEAR(table.rows[3].speed_up, std::pow(8, 0.9), 1e-9);
    EXPECT_NEAR(table.rows[3].efficiency, std::pow(8, -0.1), 1e-9);
}

TEST(Laws, TwoLevelsAreATableAndNoLaw) {
    const Model model = analyze(over_gpus({1, 2}, "local_batch", 3));
    const auto laws = laws_over(model, "gpus", "epoch_time_s", "weak");
    ASSERT_EQ(laws.size(), 1u);
    EXPECT_FALSE(laws[0]->fit);
    EXPECT_EQ(laws[0]->reason, "no law: 2 levels");
    EXPECT_EQ(model.scaling.size(), 1u);
}

TEST(Laws, ThreeLevelsAreLabelled) {
    const Model model = analyze(over_gpus({1, 2, 4}, "local_batch"));
    for (const Law* law : laws_over(model, "gpus", "epoch_time_s", "weak")) {
        EXPECT_NE(law->fit->form, stats::Form::power_floor);
        if (law->selected) {
            EXPECT_TRUE(law->reason.starts_with("3 levels"));
        }
    }
}

TEST(Laws, AGrowingDataSetIsNoScalingLaw) {
    auto records = over_gpus({1, 2, 4, 8}, "local_batch");
    for (auto& record : records) {
        record.factors["dataset_samples"] = 5004 * record.factors["gpus"].get<int>();
    }
    const Model model = analyze(records);
    const auto laws = laws_over(model, "gpus", "epoch_time_s", "weak");
    ASSERT_EQ(laws.size(), 1u);
    EXPECT_FALSE(laws[0]->fit);
    EXPECT_NE(laws[0]->reason.find("data set grows"), std::string::npos);
    EXPECT_TRUE(model.scaling.empty());
}

/// Energy per epoch over caps with a minimum between them: no form of ours has one.
std::vector<store::RunRecord> over_caps(int repeats) {
    std::vector<store::RunRecord> records;
    for (const int cap : {100, 125, 150, 175, 200, 225, 250}) {
        for (int repeat = 0; repeat < repeats; ++repeat) {
            const double seconds = (3500 + 72000 * std::exp(-cap / 32.0)) * (1 + 0.002 * repeat);
            records.push_back(run_record(std::to_string(records.size()),
                                         {{"workload", "resnet50"}, {"gpus", 1}, {"power_cap_w", cap}}, seconds, 1,
                                         0.88 * cap));
        }
    }
    return records;
}

TEST(Laws, NoFormFitsAMinimumBetweenTheLevels) {
    for (const int repeats : {1, 3}) {
        const Model model = analyze(over_caps(repeats));
        const auto energy = laws_over(model, "power_cap_w", "epoch_energy_j");
        ASSERT_FALSE(energy.empty());
        for (const Law* law : energy) {
            EXPECT_FALSE(law->selected) << stats::info(law->fit->form).id;
            EXPECT_TRUE(law->reason.starts_with("no form fits: the best, y = ")) << law->reason;
        }
        const auto time = laws_over(model, "power_cap_w", "epoch_time_s");
        EXPECT_EQ(std::ranges::count(time, true, &Law::selected), 1) << repeats;
    }
}

json study_factors(int gpus, int cap, int clock) {
    return {{"workload", "resnet50"},
            {"gpus", gpus},
            {"power_cap_w", cap},
            {"sm_clock_mhz", clock},
            {"local_batch", 128}};
}

TEST(Laws, OneFactorDesignsShareTheirBaseline) {
    std::vector<store::RunRecord> records;
    const auto add = [&](int gpus, int cap, int clock) {
        records.push_back(run_record(std::to_string(records.size()), study_factors(gpus, cap, clock),
                                     1e6 / gpus / cap / clock, gpus));
    };
    add(4, 250, 1380);
    for (const int cap : {100, 200}) {
        add(4, cap, 1380);
    }
    for (const int clock : {135, 735}) {
        add(4, 250, clock);
    }
    add(2, 250, 1380);
    add(8, 250, 1380);
    const Model model = analyze(records);
    for (const auto& [factor, scaling] :
         std::map<std::string, std::string>{{"gpus", "weak"}, {"power_cap_w", ""}, {"sm_clock_mhz", ""}}) {
        const auto laws = laws_over(model, factor, "epoch_time_s", scaling);
        ASSERT_FALSE(laws.empty()) << factor;
        EXPECT_EQ(laws[0]->n_levels, 3u) << factor;
        EXPECT_EQ(laws[0]->fit->form, stats::Form::power);
        EXPECT_NEAR(laws[0]->fit->parameters[1].value, -1, 1e-9) << factor;
    }
}

TEST(Laws, FactorialDesignsHaveOneSeriesPerCombination) {
    std::vector<store::RunRecord> records;
    for (const int gpus : {2, 4, 8}) {
        for (const int cap : {100, 150, 200, 250}) {
            records.push_back(run_record(std::to_string(records.size()), study_factors(gpus, cap, 1380),
                                         1e6 / gpus / cap, gpus));
        }
    }
    const Model model = analyze(records);
    std::set<json> cap_groups, gpu_groups;
    for (const Law* law : laws_over(model, "power_cap_w", "epoch_time_s")) {
        cap_groups.insert(law->group);
    }
    for (const Law* law : laws_over(model, "gpus", "epoch_time_s", "weak")) {
        gpu_groups.insert(law->group);
    }
    EXPECT_EQ(cap_groups.size(), 3u);
    EXPECT_EQ(gpu_groups.size(), 4u);
}

TEST(Laws, BatchLawsAreOverTheBatchThatTheStudyNames) {
    for (const char* factor : {"local_batch", "global_batch"}) {
        std::vector<store::RunRecord> records;
        for (const int batch : {32, 64, 128, 256}) {
            records.push_back(run_record(std::to_string(batch),
                                         {{"workload", "x"}, {"gpus", 4}, {factor, batch}},
                                         10 + 400.0 / batch, 4));
        }
        const Model model = analyze(records);
        EXPECT_FALSE(laws_over(model, factor, "epoch_time_s").empty());
        const char* other = factor == std::string("local_batch") ? "global_batch" : "local_batch";
        EXPECT_TRUE(laws_over(model, other, "epoch_time_s").empty());
    }
}

TEST(Laws, FailedCutAndIncompleteRunsStayOut) {
    auto records = over_gpus({1, 2, 4}, "local_batch", 1);
    records[0].status = "failed";
    records[1].status = "cut";
    const Model model = analyze(records);
    EXPECT_EQ(model.runs.size(), 3u);
    EXPECT_EQ(model.configurations.size(), 1u);
    EXPECT_TRUE(model.laws.empty());
}

}  // namespace
}  // namespace joulemark::analysis
