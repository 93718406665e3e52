// SPDX-License-Identifier: Apache-2.0
#include "core/csv.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::csv {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields;
    split(line, fields);
    return fields;
}

TEST(Csv, SplitsPlainEmptyAndQuotedFields) {
    EXPECT_EQ(fields_of("a,,c"), (std::vector<std::string>{"a", "", "c"}));
    EXPECT_EQ(fields_of(""), (std::vector<std::string>{""}));
    EXPECT_EQ(fields_of("\"a,\"\"b\"\"\",c"), (std::vector<std::string>{"a,\"b\"", "c"}));
}

TEST(Csv, EveryFieldSurvivesQuoting) {
    std::mt19937 random(7);
    const std::string alphabet = "ab ,\"';{}:";
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::string> fields(1 + random() % 5);
        std::string line;
        for (auto& field : fields) {
            for (auto n = random() % 8; n > 0; --n) {
                field += alphabet[random() % alphabet.size()];
            }
            line += (line.empty() && &field == &fields.front() ? "" : ",") + quote(field);
        }
        ASSERT_EQ(fields_of(line), fields) << line;
    }
}

TEST(Csv, NumbersAreWholeFields) {
    EXPECT_EQ(number("1.5e3"), 1500.0);
    EXPECT_EQ(number("1.5 W"), std::nullopt);
    EXPECT_EQ(number(""), std::nullopt);
    EXPECT_EQ(integer("9007199254740993"), 9007199254740993);
    EXPECT_EQ(text(0.1), "0.1");
    EXPECT_EQ(text(std::nan("")), "");
}

TEST(LineReader, DropsATornLastLineUnlessAskedForIt) {
    const auto path = std::filesystem::temp_directory_path() / "joulemark_line_reader_test.csv";
    std::ofstream(path) << "one\r\n" << std::string(700'000, 'x') << "\ntorn";
    std::string_view line;
    LineReader reader(path);
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "one");
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line.size(), 700'000u);
    EXPECT_FALSE(reader.next(line));
    EXPECT_TRUE(reader.next_or_rest(line));
    EXPECT_EQ(line, "torn");
    EXPECT_EQ(reader.line_number(), 3u);
    std::filesystem::remove(path);
    EXPECT_THROW(LineReader{path}, Error);
}

}  // namespace
}  // namespace joulemark::csv
