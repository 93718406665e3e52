// SPDX-License-Identifier: Apache-2.0
#include "core/files.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::files {
namespace {

class Files : public testing::Test {
  protected:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("joulemark_files_test_" + std::to_string(getpid()));
    void SetUp() override { make_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(Files, AtomicWriteReplacesTheWholeFileAndLeavesNothingBeside) {
    write_atomically(folder_ / "a", "first, longer");
    write_atomically(folder_ / "a", " second \n");
    EXPECT_EQ(read(folder_ / "a"), " second \n");
    EXPECT_EQ(read_line(folder_ / "a"), "second");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, AnAtomicWriteFollowsASymbolicLink) {
    write_atomically(folder_ / "target", "old");
    std::filesystem::create_symlink(folder_ / "target", folder_ / "link");
    write_atomically(folder_ / "link", "new");
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
    EXPECT_EQ(read(folder_ / "target"), "new");
}

TEST_F(Files, WhatCannotBeWrittenNamesThePath) {
    write_atomically(folder_ / "file", "");
    try {
        make_directories(folder_ / "file" / "below");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::environment);
        EXPECT_NE(std::string(error.what()).find("file/below"), std::string::npos);
    }
    EXPECT_THROW(write_atomically("/dev/full/x", "x"), Error);
    EXPECT_THROW(write_atomically("/dev/full", "x"), Error);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << "a device is written to, not replaced";
    EXPECT_EQ(read(folder_ / "missing"), std::nullopt);
}

}  // namespace
}  // namespace joulemark::files
