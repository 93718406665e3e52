// SPDX-License-Identifier: Apache-2.0
#include "analysis/sensitivity.h"

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

/// Caps of one workload: 250 W is fast, 100 W slow; `gpu_w` is what a GPU draws.
std::vector<store::RunRecord> caps(double slow_w, double slow_s) {
    std::vector<store::RunRecord> records;
    records.push_back(run_record("fast", {{"workload", "x"}, {"power_cap_w", 250}}, 10, 2, 240));
    records.push_back(run_record("slow", {{"workload", "x"}, {"power_cap_w", 100}}, slow_s, 2, slow_w));
    return records;
}

const Sensitivity& of(const Model& model, const std::string& component) {
    return *std::ranges::find(model.sensitivity, component, &Sensitivity::component);
}

TEST(Sensitivity, AFactorWidensTheBandAndKeepsTheOrder) {
    const Model model = analyze(caps(100, 12));
    const Sensitivity& cooling = of(model, "cooling");
    const double measured = *model.runs[0].energy_j + *model.runs[1].energy_j;
    EXPECT_NEAR(cooling.energy_band_j.low, measured * cooling.low, 1e-6);
    EXPECT_NEAR(cooling.energy_band_j.high, measured * cooling.high, 1e-6);
    ASSERT_EQ(cooling.conclusions.size(), 1u);
    EXPECT_EQ(cooling.conclusions[0].text.find("power_cap_w 100 needs the least energy"), 0u);
    EXPECT_TRUE(cooling.conclusions[0].survives);
}

TEST(Sensitivity, UnmeasuredWattsFavourTheFast) {
    // 310 W x 18.5 s beats 590 W x 10 s by little: any constant power turns it round.
    const Model model = analyze(caps(100, 18.5));
    const Sensitivity& network = of(model, "network");
    EXPECT_EQ(network.conclusions[0].text.find("power_cap_w 100 needs the least energy"), 0u);
    EXPECT_FALSE(network.conclusions[0].survives);
}

TEST(Sensitivity, OnlyWhatIsNotMeasured) {
    const Model model = analyze(caps(100, 12));  // CPU and DRAM are
    for (const Sensitivity& sensitivity : model.sensitivity) {
        EXPECT_NE(sensitivity.component, "cpu");
        EXPECT_NE(sensitivity.component, "dram");
    }
}

TEST(Sensitivity, OfATableNothingIsKnown) {
    const Model model =
        analyze(std::vector{imported_record("row", {{"gpus", 1}}, {{"energy_j", 5}, {"gpu_hours", 1}})});
    EXPECT_TRUE(model.sensitivity.empty());
}

}  // namespace
}  // namespace joulemark::analysis
