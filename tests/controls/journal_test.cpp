// SPDX-License-Identifier: Apache-2.0
#include "controls/journal.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_gpu.h"

namespace joulemark::controls {
namespace {

using State = Outcome::State;

class JournalTest : public testing::Test {
  protected:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("joulemark_journal_test_" + std::to_string(getpid()));
    nvml::Device gpu_ = FakeGpu::make();
    Change cap_{"gpu0", "GPU-fake", Kind::power_cap, 150, 150, 250};
    Change clock_{"gpu0", "GPU-fake", Kind::sm_clock, 700, 735, std::nullopt};

    void SetUp() override { setenv("JOULEMARK_CONTROL_DIR", folder_.c_str(), 1); }
    void TearDown() override {
        unsetenv("JOULEMARK_CONTROL_DIR");
        std::filesystem::remove_all(folder_);
    }
};

TEST_F(JournalTest, WhatIsWrittenReadsBackEqual) {
    const Journal written{control_directory() / "1.journal", boot_id(), {cap_, clock_}};
    written.write();
    const auto read = Journal::read(written.file);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->boot_id, boot_id());
    ASSERT_EQ(read->changes.size(), 2u);
    EXPECT_EQ(read->changes[0].previous, 250);
    EXPECT_EQ(read->changes[1].kind, Kind::sm_clock);
    EXPECT_EQ(read->changes[1].previous, std::nullopt);
    written.remove();
    EXPECT_FALSE(Journal::read(written.file));
}

TEST_F(JournalTest, GarbageIsNoJournal) {
    const auto file = control_directory() / "2.journal";
    for (const char* text : {"", "[", "{}", R"({"changes": [{"device": 1}]})",
                             R"({"changes": [{"device":"gpu0","uuid":"u","control":"volume","requested":1,"set":1,"previous":1}]})"}) {
        std::ofstream(file) << text;
        EXPECT_FALSE(Journal::read(file)) << text;
    }
}

TEST_F(JournalTest, UndoRestoresOnlyWhatIsStillOurs) {
    FakeGpu::limit_mw = 150'000;
    FakeGpu::locked_mhz = 735;
    auto outcomes = undo({cap_, clock_}, {gpu_});
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_EQ(outcomes[0].change.kind, Kind::sm_clock) << "last change first";
    EXPECT_EQ(outcomes[1].state, State::restored);
    EXPECT_EQ(FakeGpu::limit_mw, 250'000u);
    EXPECT_EQ(FakeGpu::locked_mhz, 0u);

    FakeGpu::limit_mw = 200'000;  // somebody set it meanwhile
    outcomes = undo({cap_}, {gpu_});
    EXPECT_EQ(outcomes[0].state, State::changed_by_others);
    EXPECT_EQ(FakeGpu::limit_mw, 200'000u);
}

TEST_F(JournalTest, OneFailedRestoreStopsNoOther) {
    FakeGpu::limit_mw = 150'000;
    Change lost = cap_;
    lost.uuid = "GPU-gone";
    const auto outcomes = undo({cap_, lost}, {gpu_});
    EXPECT_EQ(outcomes[0].state, State::failed);
    EXPECT_EQ(outcomes[1].state, State::restored);
}

TEST_F(JournalTest, AGpuIsLockedOnce) {
    auto first = lock_gpu("GPU-fake");
    ASSERT_TRUE(first);
    EXPECT_FALSE(lock_gpu("GPU-fake"));
    first->reset();
    EXPECT_TRUE(lock_gpu("GPU-fake"));
}

}  // namespace
}  // namespace joulemark::controls
