// SPDX-License-Identifier: Apache-2.0
#include "sim/fault.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::sim {
namespace {

TEST(Fault, EveryPartIsRead) {
    const Fault fault = parse_fault("slow:nvmlDeviceGetTotalEnergyConsumption=50@2.5#3");
    EXPECT_EQ(fault.kind, FaultKind::slow);
    EXPECT_STREQ(fault.function, "nvmlDeviceGetTotalEnergyConsumption");
    EXPECT_EQ(fault.value, 50);
    EXPECT_EQ(fault.after_ns, 2'500'000'000);
    EXPECT_EQ(fault.gpu, 3);
}

TEST(Fault, TextAndFaultAreTheSame) {
    for (const char* spec :
         {"counter-freeze@120#0", "counter-reset@60", "counter-wrap=1000", "power-frozen", "gpu-lost@30#1",
          "not-supported:NVML_FI_DEV_POWER_INSTANT", "no-permission:nvmlDeviceSetPowerManagementLimit",
          "slow:nvmlDeviceGetPowerUsage=5", "index-order", "mig#0"}) {
        EXPECT_EQ(to_string(parse_fault(spec)), spec);
    }
}

class BadFault : public testing::TestWithParam<const char*> {};
TEST_P(BadFault, IsRefusedAndNamed) {
    try {
        parse_fault(GetParam());
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        EXPECT_NE(std::string(error.what()).find(GetParam()), std::string::npos) << error.what();
    }
}
INSTANTIATE_TEST_SUITE_P(Specs, BadFault,
                         testing::Values("", "explode", "slow", "slow:nvmlDeviceGetPowerUsage",
                                         "slow:nvmlDeviceGetPowerUsage=", "slow:nvmlDeviceGetPowerUsage=-1",
                                         "not-supported:nvmlNothing", "counter-freeze=3", "counter-wrap=0",
                                         "gpu-lost@soon", "gpu-lost@nan", "gpu-lost#-1", "mig@3",
                                         "mig:nvmlDeviceGetName"));

}  // namespace
}  // namespace joulemark::sim
