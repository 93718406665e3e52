// SPDX-License-Identifier: Apache-2.0
#include "meter/output_tap.h"

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace joulemark::meter {
namespace {

/// Makes a mark of each line.
class EveryLine final : public LogReader {
  public:
    std::string option() const override { return "every line"; }
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
        MonotonicClock clock;
        OutputTap tap(std::move(readers), clock, [&](Message) {
            ++taken;
            std::this_thread::sleep_for(std::chrono::milliseconds(60));
        });
        ASSERT_EQ(write(tap.command_sides().front(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
        tap.start();
        tap.finish();
    }
    EXPECT_EQ(captured.end(), data);
    EXPECT_EQ(taken, 40);
}

/// Begins and ends of regions as what each of `reads` brought makes them, and what the tap has to say.
struct Told {
    std::vector<Message::Event> events;
    std::vector<std::string> doubts, unmatched;
};

Told told_by(std::unique_ptr<LogReader> reader, const std::vector<std::pair<int, std::string>>& reads,
             bool cut_short = false) {
    Told told;
    std::vector<std::unique_ptr<LogReader>> readers;
    readers.push_back(std::move(reader));
    Captured captured;
    MonotonicClock clock;
    OutputTap tap(std::move(readers), clock, [&](const Message& message) { told.events.push_back(message.event); });
    const int input = dup(tap.command_sides().front());
    tap.start();
    for (const auto& [after_ms, text] : reads) {
        std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
        EXPECT_EQ(write(input, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    tap.finish(cut_short);
    close(input);
    captured.end();
    told.doubts = tap.doubts();
    told.unmatched = tap.unmatched();
    return told;
}

std::unique_ptr<LogReader> epochs(EpochRegexReader::Line line = EpochRegexReader::Line::at_begin) {
    return std::make_unique<EpochRegexReader>(R"(^Epoch (\d+))", line);
}

TEST(OutputTap, LinesThatArriveAtOnceMarkNoTimes) {
    using enum Message::Event;
    const Told told = told_by(epochs(), {{0, "Epoch 0\n"},
                                          {200, "Epoch 1\nEpoch 2\n"},
                                          {200, "Epoch 3\n"},
                                          {200, "Epoch 4\n"}});
    EXPECT_EQ(told.events, (std::vector{begin, abort, begin, abort, begin, abort, begin, end, begin, end}));
    ASSERT_EQ(told.doubts.size(), 1U);
    EXPECT_TRUE(told.doubts[0].starts_with("the times of 3 regions are not known")) << told.doubts[0];
}

TEST(OutputTap, ARankThatLagsDoesNotHoldLinesBack) {
    using enum Message::Event;
    const auto line = [](const std::string& key, int epoch) {
        return fmt::format(R"(:::MLLOG {{"key": "{}", "metadata": {{"epoch_num": {}}}}})", key, epoch) + '\n';
    };
    const Told told = told_by(std::make_unique<MllogReader>(),
                              {{0, line("epoch_start", 0) + line("epoch_start", 0)},
                               {200, line("epoch_stop", 0) + line("epoch_start", 1) + line("epoch_stop", 0)}});
    EXPECT_EQ(told.events, (std::vector{begin, begin, end, begin, end}));
}

TEST(OutputTap, TheLastEpochOfACommandThatWasCutShortIsNone) {
    using enum Message::Event;
    const Told told = told_by(epochs(), {{0, "Epoch 0\n"}, {100, "Epoch 1\n"}}, true);
    EXPECT_EQ(told.events, (std::vector{begin, end, begin, abort}));
}

TEST(OutputTap, TellsLinesAtTheEndsOfEpochsFromThoseAtTheirBegins) {
    const std::vector<std::pair<int, std::string>> reads{{300, "Epoch 0\n"}, {300, "Epoch 1\n"}, {300, "Epoch 2\n"}};
    const Told told = told_by(epochs(), reads);
    ASSERT_EQ(told.doubts.size(), 1U);
    EXPECT_TRUE(told.doubts[0].ends_with("--epoch-end-regex")) << told.doubts[0];
    EXPECT_TRUE(told_by(epochs(EpochRegexReader::Line::at_end), reads).doubts.empty());
    EXPECT_TRUE(
        told_by(epochs(), {{0, "Epoch 0\n"}, {300, "Epoch 1\n"}, {300, "Epoch 2\n"}, {300, "done\n"}})
            .doubts.empty());
}

TEST(OutputTap, SaysWhatNoLineAnswered) {
    EXPECT_EQ(told_by(epochs(), {{0, "loss\nloss\nend"}}).unmatched,
              std::vector<std::string>{"--epoch-regex '^Epoch (\\d+)' matched no line of the 3 on standard output and "
                                       "standard error: it marked nothing"});
    EXPECT_TRUE(told_by(epochs(), {{0, "Epoch 0"}}).unmatched.empty());
}

}  // namespace
}  // namespace joulemark::meter
