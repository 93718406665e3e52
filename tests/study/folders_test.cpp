// SPDX-License-Identifier: Apache-2.0
#include "study/folders.h"

#include <ctime>
#include <fstream>

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;

void age(const fs::path& path) {
    const timespec hour_ago{.tv_sec = std::time(nullptr) - 3600, .tv_nsec = 0};
    const timespec times[] = {hour_ago, hour_ago};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(TemporaryFolder, OfAKilledProcessIsRemovedByTheNextAndOfALivingOneIsNot) {
    const fs::path parent = fs::temp_directory_path() / ("joulemark_folders_test_" + std::to_string(getpid()));
    fs::create_directories(parent);
    const fs::path killed = parent / "joulemark-sim-aB3xY9";
    const fs::path young = parent / "joulemark-sim-young1";
    const fs::path foreign = parent / "joulemark-sim-test-17-1";
    for (const fs::path& folder : {killed, young, foreign}) {
        fs::create_directories(folder);
        std::ofstream(folder / "gpus") << "state";
    }
    age(killed);
    age(foreign);
    fs::path path;
    {
        const TemporaryFolder living(parent);
        age(living.path());
        const TemporaryFolder next(parent);
        path = living.path();
        EXPECT_TRUE(fs::exists(living.path()));
        EXPECT_FALSE(fs::exists(killed));
        EXPECT_TRUE(fs::exists(young));
        EXPECT_TRUE(fs::exists(foreign));
    }
    EXPECT_FALSE(fs::exists(path));
    fs::remove_all(parent);
}

}  // namespace
}  // namespace joulemark::study
