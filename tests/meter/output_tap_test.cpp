// SPDX-License-Identifier: Apache-2.0
#include "meter/output_tap.h"

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace joulemark::meter {
namespace {

/// Makes a mark of each line.
class EveryLine final : public LogReader {
  public:
    void read(std::string_view line, std::vector<Message>& messages) override {
        messages.emplace_back().name = line;
    }
    void finish(std::vector<Message>&) override {}
};

/// Standard output leads into a pipe while this lives.
class Captured {
  public:
    Captured() : saved_(dup(STDOUT_FILENO)) {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe(ends.data()), 0);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[1]);
        ours_ = ends[0];
        reader_ = std::thread([this] {
            std::array<char, 4096> block;
            for (ssize_t got; (got = ::read(ours_, block.data(), block.size())) > 0;) {
                text_.append(block.data(), static_cast<std::size_t>(got));
            }
        });
    }
    std::string end() {
        dup2(saved_, STDOUT_FILENO);
        close(saved_);
        reader_.join();
        close(ours_);
        return text_;
    }

  private:
    int saved_;
    int ours_ = -1;
    std::string text_;
    std::thread reader_;
};

TEST(OutputTap, WhatTheCommandLeftArrivesHoweverSlowlyItIsTaken) {
    std::string data;
    for (int line = 0; line < 40; ++line) {
        data += std::string(1000, static_cast<char>('a' + line % 26)) +
                "\n";  // fits into a pipe, not into one read
    }
    Captured captured;
    std::vector<std::unique_ptr<LogReader>> readers;
    readers.push_back(std::make_unique<EveryLine>());
    int taken = 0;
    {
        OutputTap tap(std::move(readers), [&](Message) {
            ++taken;
            std::this_thread::sleep_for(std::chrono::milliseconds(60));
        });
        ASSERT_EQ(write(tap.command_side(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
        tap.start();
        tap.finish();
    }
    EXPECT_EQ(captured.end(), data);
    EXPECT_EQ(taken, 40);
}

}  // namespace
}  // namespace joulemark::meter
