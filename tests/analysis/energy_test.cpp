// SPDX-License-Identifier: Apache-2.0
#include "analysis/energy.h"

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

struct Row {
    const char* series;
    int gpus;
    double samples, energy_kwh, gpu_hours;
};

// Series means of Huber et al. 2025 (arXiv 2508.07706), ResNet-50 on A100, 100 epochs, 4 GPUs a node.
constexpr Row huber[] = {
    {"gbs256", 1, 80072, 2.480, 5.139},         {"gbs256", 2, 160145, 3.899, 10.253},
    {"gbs256", 4, 320291, 6.935, 21.937},       {"gbs256", 8, 640583, 15.011, 47.940},
    {"gbs256", 16, 1281167, 33.277, 113.664},   {"gbs8192", 32, 160145, 3.807, 14.288},
    {"gbs8192", 64, 320291, 7.533, 27.191},     {"gbs8192", 128, 640583, 15.498, 54.271},
    {"gbs8192", 256, 1281167, 33.257, 113.976}, {"lbs256", 1, 5004, 0.1819, 0.4108},
    {"lbs256", 2, 10009, 0.2670, 0.8109},       {"lbs256", 4, 20018, 0.4606, 1.717},
    {"lbs256", 8, 40036, 0.9389, 3.482},        {"lbs256", 16, 80072, 1.877, 7.024},
    {"lbs256", 64, 320291, 7.521, 28.238},      {"lbs256", 128, 640583, 15.260, 58.232},
    {"lbs256", 256, 1281167, 30.207, 113.487},
};

Model huber_model() {
    std::vector<store::RunRecord> records;
    for (const Row& row : huber) {
        records.push_back(
            imported_record("row" + std::to_string(records.size()),
                            {{"series", row.series},
                             {"gpus", row.gpus},
                             {"dataset_samples", row.samples},
                             {"gpus_per_node", 4},
                             {"epochs", 100}},
                            {{"energy_j", row.energy_kwh * 3.6e6}, {"gpu_hours", row.gpu_hours}}));
    }
    return analyze(records);
}

TEST(EnergyLines, ReproduceThePublishedSlopes) {
    const Model model = huber_model();
    const std::map<std::string, double> slopes{{"gbs256", 0.2850}, {"gbs8192", 0.2958}, {"lbs256", 0.2652}};
    ASSERT_EQ(model.energy_per_gpu_hour.size(), 4u);
    for (const EnergyLine& line : model.energy_per_gpu_hour) {
        if (line.pooled) {
            EXPECT_EQ(line.n, 17u);
            EXPECT_TRUE(line.group.empty());
            continue;
        }
        EXPECT_NEAR(line.slope.value, slopes.at(line.group["series"]), 5e-5);
        EXPECT_TRUE(line.slope.ci95->contains(line.slope.value));
        EXPECT_GT(line.r2, 0.999);
    }
    const auto lbs = std::ranges::find_if(
        model.energy_per_sample, [](const EnergyLine& line) { return line.group["series"] == "lbs256"; });
    ASSERT_NE(lbs, model.energy_per_sample.end());
    EXPECT_NEAR(lbs->slope.value, 0.0236, 5e-5);  // Wh per sample of the data set, over 100 epochs
}

TEST(EnergyLines, TheDataSetGrowsSoThereIsNoStrongScalingLaw) {
    const Model model = huber_model();
    EXPECT_FALSE(model.laws.empty());
    for (const Law& law : model.laws) {
        EXPECT_FALSE(law.fit) << law.response << " over " << law.factor;
    }
    EXPECT_TRUE(model.scaling.empty());
}

TEST(EnergyLines, PartlyUsedNodesAreWarnedOf) {
    const Model model = huber_model();
    const auto warning = std::ranges::find(model.warnings, "node_billed_whole", &Warning::code);
    ASSERT_NE(warning, model.warnings.end());
    EXPECT_NE(warning->text.find("3 more runs"), std::string::npos);  // 1 and 2 GPUs, in two series
}

TEST(EnergyLines, TwoPointsAreNoLine) {
    std::vector<store::RunRecord> records;
    for (const Row& row : {huber[0], huber[1]}) {
        records.push_back(
            imported_record(std::to_string(row.gpus), {{"gpus", row.gpus}},
                            {{"energy_j", row.energy_kwh * 3.6e6}, {"gpu_hours", row.gpu_hours}}));
    }
    EXPECT_TRUE(analyze(records).energy_per_gpu_hour.empty());
}

}  // namespace
}  // namespace joulemark::analysis
