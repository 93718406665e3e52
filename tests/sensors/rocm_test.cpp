// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "sensors/fake_rocm_smi.h"
#include "sensors/fixture.h"

namespace joulemark::sensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* fake_library = JOULEMARK_BINARY_DIR "/tests/libfake_rocm_smi.so";

/// The look-alike in place of AMD's library, reset to its defaults.
class Rocm : public testing::Test {
  protected:
    void SetUp() override {
        setenv("JOULEMARK_ROCM_SMI", fake_library, 1);
        handle_ = dlopen(fake_library, RTLD_NOW);
        ASSERT_NE(handle_, nullptr) << dlerror();
        fake_ = static_cast<FakeRocm*>(dlsym(handle_, "fake_rocm"));
        ASSERT_NE(fake_, nullptr);
        *fake_ = FakeRocm{};
    }
    void TearDown() override {
        dlclose(handle_);
        unsetenv("JOULEMARK_ROCM_SMI");
    }

    Found discover(const Environment& environment = {}) const {
        return Found(discover_rocm, FixtureTree("nothing"), {}, environment);
    }
    static Source& source(const Found& found, const std::string& name, const std::string& device) {
        for (const auto& source : found.machine.sources) {
            if (source->info().name == name && source->info().device == device) {
                return *source;
            }
        }
        throw std::runtime_error("no source " + name);
    }

    FakeRocm* fake_ = nullptr;

  private:
    void* handle_ = nullptr;
};

TEST_F(Rocm, gives_metrics_in_si_units_and_the_accumulator_in_joules) {
    const Found found = discover();
    EXPECT_EQ(found.machine.gpus_on_node, 2U);
    const Device& device = found.machine.devices.at(1);
    EXPECT_EQ(device.id, "gpu1");
    EXPECT_EQ(device.uuid, "GPU-000000000000abc1");
    EXPECT_EQ(device.pci_bus_id, "0000:c2:00.0");
    EXPECT_EQ(device.power_limit_max_w, 560);
    Source& quick = source(found, "rocm", "gpu1");
    EXPECT_THAT(quick.info().metrics, ElementsAre(Metric::gpu_power_w, Metric::gpu_busy_pct,
                                                  Metric::gpu_memory_used_bytes, Metric::gpu_temperature_c));
    EXPECT_THAT(read(quick), ElementsAre(500, 90, 32000, 61));
    Source& energy = source(found, "rocm.energy", "gpu1");
    EXPECT_THAT(read(energy), ElementsAre(0));
    fake_->gpus[1].counts += 2'000'000;
    EXPECT_THAT(read(energy), ElementsAre(testing::DoubleNear(31, 1e-9)));
}

TEST_F(Rocm, one_die_reports_the_card_and_the_other_is_not_a_zero) {
    fake_->gpus[1] = {.power_uw = 0, .counts = 0};
    const Found found = discover();
    EXPECT_THROW(source(found, "rocm.energy", "gpu1"), std::runtime_error);
    EXPECT_THAT(found.report("rocm.energy gpu1")->reason, HasSubstr("other die"));
    EXPECT_THAT(source(found, "rocm", "gpu1").info().metrics,
                testing::Not(testing::Contains(Metric::gpu_power_w)));
    EXPECT_NO_THROW(source(found, "rocm.energy", "gpu0"));
}

TEST_F(Rocm, unsupported_metrics_are_reported_and_failing_reads_are_gaps) {
    const Found found = discover();
    EXPECT_EQ(found.status("rocm gpu0"),
              "unavailable");  // power limit and memory controller: no such function
    fake_->gpus[0].busy_status = 5;
    EXPECT_THAT(read(source(found, "rocm", "gpu0")), ElementsAre(500, testing::IsNan(), 32000, 61));
}

TEST_F(Rocm, only_the_jobs_gpus) {
    const Found found = discover({{"ROCR_VISIBLE_DEVICES", "1"}});
    ASSERT_EQ(found.machine.devices.size(), 1U);
    EXPECT_EQ(found.machine.devices[0].id, "gpu1");
    EXPECT_EQ(found.machine.visibility_source, "ROCR_VISIBLE_DEVICES=1");
}

TEST(RocmAbsent, machine_without_amd_gpus_has_no_line_and_one_without_the_library_a_remedy) {
    EXPECT_TRUE(Found(discover_rocm, FixtureTree("nothing")).machine.reports.empty());
    setenv("JOULEMARK_ROCM_SMI", "/nonexistent.so", 1);
    const Found found(discover_rocm, FixtureTree("nothing"));
    EXPECT_THAT(found.report("rocm")->remedy, HasSubstr("install"));
    unsetenv("JOULEMARK_ROCM_SMI");
}

}  // namespace
}  // namespace joulemark::sensors
