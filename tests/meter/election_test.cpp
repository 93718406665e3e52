// SPDX-License-Identifier: Apache-2.0
#include "meter/election.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "core/files.h"
#include "fakes.h"
#include "meter/marker_socket.h"

namespace joulemark::meter {
namespace {

class ElectionTest : public testing::Test {
  protected:
    auto hold(const std::string& key = "job", int rank = 0) const {
        return Election::hold(folder_.path(), key, rank);
    }
    const TemporaryFolder folder_;
    MonotonicClock clock_;
};

TEST_F(ElectionTest, OneMetersAndTheOthersLearnWhere) {
    const MarkerSocket socket(folder_.path(), clock_, [](Message, std::int64_t) {});
    auto first = hold();
    ASSERT_TRUE(std::holds_alternative<Election::Sampler>(first));
    auto& sampler = std::get<Election::Sampler>(first);
    std::atomic<int> members = 0;
    std::atomic<bool> leave = false;
    std::vector<std::jthread> others;
    for (int i = 0; i < 7; ++i) {
        others.emplace_back([&, i] {
            const auto role = hold("job", i + 1);
            ASSERT_TRUE(std::holds_alternative<Election::Member>(role));
            EXPECT_EQ(std::get<Election::Member>(role).socket_path, socket.path());
            ++members;
            leave.wait(false);
            if (i > 0) {
                std::get<Election::Member>(role).ended(i);
            }
        });
    }
    sampler.announce(socket.path());
    while (members < 7) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(sampler.others_run());
    leave = true;
    leave.notify_all();
    others.clear();
    EXPECT_FALSE(sampler.others_run());
    const auto ends = sampler.ends();
    ASSERT_EQ(ends.size(), 7U) << "also when they have ended";
    EXPECT_FALSE(ends[0].exit_status) << "it went without a word";
    for (int i = 1; i < 7; ++i) {
        EXPECT_EQ(ends[static_cast<std::size_t>(i)].rank, i + 1);
        EXPECT_EQ(ends[static_cast<std::size_t>(i)].exit_status, i);
    }
}

TEST_F(ElectionTest, OtherJobsHaveTheirOwn) {
    const auto one = hold("job1");
    const auto two = hold("job2");
    EXPECT_TRUE(std::holds_alternative<Election::Sampler>(one));
    EXPECT_TRUE(std::holds_alternative<Election::Sampler>(two));
}

TEST_F(ElectionTest, FilesThatACrashLeftBehindBlockNobody) {
    std::string base;
    {
        const auto role = hold();
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            if (entry.path().extension() == ".lock") {
                base = entry.path();
            }
        }
    }
    ASSERT_FALSE(base.empty());
    EXPECT_FALSE(std::filesystem::exists(base)) << "removed in the end";
    files::write_atomically(base, "/nonexistent/joulemark.sock");
    EXPECT_TRUE(std::holds_alternative<Election::Sampler>(hold()));
}

TEST_F(ElectionTest, TheNextSamplerTakesOverAtOnce) {
    {
        const auto role = hold();
        ASSERT_TRUE(std::holds_alternative<Election::Sampler>(role));
    }
    EXPECT_TRUE(std::holds_alternative<Election::Sampler>(hold()));
}

}  // namespace
}  // namespace joulemark::meter
