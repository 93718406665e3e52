// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_calibration.h"

#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "records.h"

namespace joulemark::analysis {
namespace {

/// With a wall meter that shows 80 W and 1.1 W for each W of the components.
store::RunRecord with_meter(const std::string& name, double gpu_w) {
    auto record = run_record(name, {{"workload", "x"}, {"level", gpu_w}}, 100, 2, gpu_w);
    for (auto& region : record.hosts[0].regions) {
        const double seconds = region.duration_s();
        region.devices.push_back(
            component("node", "node", (80 + 1.1 * (2 * gpu_w + 110)) * seconds, seconds));
    }
    return record;
}

TEST(WallCalibration, FindsTheLineAndEstimatesRunsWithoutAMeter) {
    std::vector<store::RunRecord> records{with_meter("a", 100), with_meter("b", 200), with_meter("c", 250),
                                          run_record("d", {{"workload", "x"}, {"level", 150}}, 100, 2, 150)};
    const Model model = analyze(records);
    ASSERT_EQ(model.wall_calibration.size(), 1U);
    const WallCalibration& found = model.wall_calibration[0];
    EXPECT_EQ(found.n, 3U);
    EXPECT_NEAR(found.base_w.value, 80, 1e-6);
    EXPECT_NEAR(found.factor.value, 1.1, 1e-9);
    ASSERT_EQ(found.estimates.size(), 1U);
    EXPECT_EQ(found.estimates[0].run, "d");
    EXPECT_NEAR(found.estimates[0].wall_energy_j.value, (80 + 1.1 * 410) * 203, 1e-3);
    EXPECT_TRUE(found.estimates[0].wall_energy_j.ci95);
}

TEST(WallCalibration, NeedsThreeRunsWithAMeter) {
    EXPECT_TRUE(analyze({with_meter("a", 100), with_meter("b", 200)}).wall_calibration.empty());
}

}  // namespace
}  // namespace joulemark::analysis
