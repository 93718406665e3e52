// SPDX-License-Identifier: Apache-2.0
#include "meter/startup_memory.h"

#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace joulemark::meter {
namespace {

/// Pages of files that this process has in memory, in kB.
long file_pages() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "RssFile:") {
            long kilobytes = 0;
            status >> kilobytes;
            return kilobytes;
        }
    }
    return -1;
}

int written = 1;

TEST(StartupMemory, LeavesTheProgramRunningAsItWasInLessMemory) {
    written = 2;
    const auto parse = [] { return nlohmann::json::parse(R"({"a": [1, 2.5, "x"]})").dump(); };
    const std::string before = parse();
    const long pages = file_pages();
    ASSERT_GT(pages, 0);
    release_startup_memory();
    EXPECT_LT(file_pages(), pages);
    EXPECT_EQ(written, 2);
    EXPECT_EQ(parse(), before);
    EXPECT_THROW(throw std::runtime_error("unwinding reads tables of every library"), std::runtime_error);
}

}  // namespace
}  // namespace joulemark::meter
