// SPDX-License-Identifier: Apache-2.0
#include "core/shell.h"

#include <array>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

namespace joulemark {
namespace {

TEST(Shell, WordsThatAreSafeStayAsTheyAre) {
    EXPECT_EQ(shell_word("studies/my-study_2.yaml"), "studies/my-study_2.yaml");
    EXPECT_EQ(shell_word("--budget=40kWh"), "--budget=40kWh");
}

TEST(Shell, TakesEveryWordBackAsItWas) {
    const std::vector<std::string> words{"",      "a b",     "it's",  "$HOME", R"({"gpu_exponent": 0.9})",
                                         "*.csv", "a\\b\"c", "~root", "new\nline"};
    const std::string command = "printf '%s\\1' " + shell_line(words);
    std::FILE* output = popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    std::array<char, 4096> buffer{};
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), output);
    pclose(output);
    std::string expected;
    for (const std::string& word : words) {
        expected += word + '\1';
    }
    EXPECT_EQ(std::string(buffer.data(), got), expected);
}

}  // namespace
}  // namespace joulemark
