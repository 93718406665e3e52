// SPDX-License-Identifier: Apache-2.0
#include "controls/control.h"

#include <gtest/gtest.h>

#include "fake_gpu.h"

namespace joulemark::controls {
namespace {

TEST(Control, APowerCapMustLieInTheRangeOfTheGpu) {
    const nvml::Device gpu = FakeGpu::make();
    EXPECT_DOUBLE_EQ(*closest(gpu, Kind::power_cap, 150.0004), 150);
    const auto refused = closest(gpu, Kind::power_cap, 99);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.failure().reason.find("100 to 250 W"), std::string::npos);
}

TEST(Control, AClockBecomesTheNearestSupportedStep) {
    const nvml::Device gpu = FakeGpu::make();
    EXPECT_EQ(*closest(gpu, Kind::sm_clock, 137), 135);
    EXPECT_EQ(*closest(gpu, Kind::sm_clock, 700), 735);
    EXPECT_FALSE(closest(gpu, Kind::sm_clock, 1400));
}

TEST(Control, AMissingPermissionIsAReasonWithARemedy) {
    const nvml::Device gpu = FakeGpu::make();
    FakeGpu::permitted = false;
    const auto failure = set(gpu, Kind::power_cap, 150);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->reason, "no permission");
    EXPECT_FALSE(failure->remedy.empty());
    EXPECT_EQ(FakeGpu::limit_mw, 250'000u);
}

TEST(Control, AClockIsPutBackByUnlocking) {
    const nvml::Device gpu = FakeGpu::make();
    EXPECT_FALSE(set(gpu, Kind::sm_clock, 735));
    EXPECT_EQ(FakeGpu::locked_mhz, 735u);
    EXPECT_EQ(current(gpu, Kind::sm_clock), std::nullopt);
    EXPECT_FALSE(put_back(gpu, Kind::sm_clock, std::nullopt));
    EXPECT_EQ(FakeGpu::locked_mhz, 0u);
}

}  // namespace
}  // namespace joulemark::controls
