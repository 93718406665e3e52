// SPDX-License-Identifier: Apache-2.0
#include "meter/log_lines.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"

namespace joulemark::meter {
namespace {

std::vector<Message> read(LogReader& reader, std::initializer_list<std::string> lines) {
    std::vector<Message> messages;
    for (const std::string& line : lines) {
        reader.read(line, messages);
    }
    return messages;
}

std::string mllog(const std::string& key, const std::string& value, const std::string& metadata = "{}") {
    return R"(:::MLLOG {"namespace": "", "time_ms": 1700000000000, "event_type": "INTERVAL_START", "key": ")" +
           key + R"(", "value": )" + value + R"(, "metadata": )" + metadata + "}";
}

TEST(MllogReader, TurnsIntervalsIntoRegions) {
    MllogReader reader;
    const auto messages = read(reader, {mllog("train_samples", "1000"), mllog("global_batch_size", "64"),
                                        "Epoch 1 starts", mllog("epoch_start", "null", R"({"epoch_num": 1})"),
                                        "0: " + mllog("epoch_stop", "null", R"({"epoch_num": 1})"),
                                        mllog("eval_start", "null", R"({"epoch_num": 1})"),
                                        mllog("eval_accuracy", "0.75", R"({"epoch_num": 1})"),
                                        mllog("eval_stop", "null", R"({"epoch_num": 1})")});
    ASSERT_EQ(messages.size(), 6U);
    EXPECT_EQ(messages[0].data, R"({"dataset_samples":1000.0})");
    EXPECT_EQ(messages[1].data, R"({"global_batch":64.0})");
    EXPECT_EQ(messages[2].event, Message::Event::begin);
    EXPECT_EQ(messages[2].name, "epoch");
    EXPECT_EQ(messages[2].index, 1);
    EXPECT_EQ(messages[2].source, "mllog");
    EXPECT_EQ(messages[3].event, Message::Event::end);
    EXPECT_EQ(messages[3].samples, 1000);
    EXPECT_FALSE(messages[3].quality);
    EXPECT_EQ(messages[5].name, "eval");
    EXPECT_EQ(messages[5].quality, 0.75);
    EXPECT_EQ(messages[5].quality_direction, "higher");
    EXPECT_FALSE(messages[5].samples);
}

TEST(MllogReader, IgnoresWhatIsNoLogLine) {
    MllogReader reader;
    EXPECT_TRUE(read(reader, {"", ":::MLLOG", ":::MLLOG {", ":::MLLOG []", R"(:::MLLOG {"key": 3})",
                              mllog("epoch_start_time", "1"), "epoch_start"})
                    .empty());
}

TEST(EpochRegexReader, AMatchEndsOneEpochAndBeginsTheNext) {
    EpochRegexReader reader(R"(^Epoch (\d+))");
    auto messages = read(reader, {"loading", "Epoch 1/3", "step 1", "Epoch 2/3"});
    reader.finish(messages);
    ASSERT_EQ(messages.size(), 4U);
    const std::vector<Message::Event> expected{Message::Event::begin, Message::Event::end,
                                               Message::Event::begin, Message::Event::end};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(messages[i].event, expected[i]) << i;
    }
    reader.finish(messages);
    EXPECT_EQ(messages.size(), 4U) << "nothing is open any more";
}

TEST(EpochRegexReader, NamedGroupsStandOnTheEpochThatTheLineEnds) {
    EpochRegexReader reader(R"(\[(\d+)\] loss[(=](?<loss>[-+.e\d]+)\)? n (?P<samples>\d+))");
    const auto messages = read(reader, {"[1] loss=9 n 5", "[2] loss(0.25) n 640"});
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[1].event, Message::Event::end);
    EXPECT_EQ(messages[1].loss, 0.25);
    EXPECT_EQ(messages[1].samples, 640);
    EXPECT_FALSE(messages[0].loss);
}

std::vector<Message::Event> events(const std::vector<Message>& messages) {
    std::vector<Message::Event> events;
    for (const Message& message : messages) {
        events.push_back(message.event);
    }
    return events;
}

TEST(EpochRegexReader, LinesThatRepeatTheNumberAreOfOneEpoch) {
    using enum Message::Event;
    for (const char* pattern : {R"((\w+ )?Epoch (\d+) .* loss (?<loss>\S+))",
                                R"(Epoch (?<epoch>\d+) step (\d+) loss (?P<loss>\S+))"}) {
        EpochRegexReader reader(pattern);
        auto messages = read(reader, {"Epoch 0 step 0 loss 9", "Epoch 0 step 1 loss 8", "Epoch 1 step 0 loss 7",
                                      "Epoch 1 step 1 loss 6"});
        reader.finish(messages);
        ASSERT_EQ(events(messages), (std::vector{begin, end, begin, end})) << pattern;
        EXPECT_EQ(messages[1].loss, 8) << "the last one of the epoch";
        EXPECT_EQ(messages[3].loss, 6);
    }
    EpochRegexReader unnumbered("Epoch (one|two)");
    EXPECT_EQ(read(unnumbered, {"Epoch one", "Epoch one"}).size(), 3U);
}

TEST(EpochRegexReader, LinesAtTheEndsOfEpochsMarkFromTheCommandsStart) {
    using enum Message::Event;
    EpochRegexReader reader(R"(^Epoch (\d+) took .* loss (?<loss>\S+) n (?<samples>\d+))",
                            EpochRegexReader::Line::at_end);
    std::vector<Message> messages;
    reader.start(messages);
    for (const char* line : {"loading", "Epoch 1 took 5 s loss 9 n 5", "Epoch 1 took 5 s loss 8 n 5",
                             "Epoch 2 took 5 s loss 7 n 6"}) {
        reader.read(line, messages);
    }
    reader.finish(messages);
    ASSERT_EQ(events(messages), (std::vector{begin, end, begin, end, begin})) << "what follows the last is no epoch";
    EXPECT_EQ(messages[1].loss, 9);
    EXPECT_EQ(messages[1].samples, 5);
    EXPECT_EQ(messages[3].loss, 7);
}

TEST(EpochRegexReader, SaysWhatIsWrongWithAPattern) {
    EXPECT_THROW(EpochRegexReader("(unclosed"), Error);
    EXPECT_THROW(EpochRegexReader("(?<accuracy>x)"), Error);
}

TEST(EpochRegexReader, TakesALongLine) {
    EpochRegexReader reader("(a|b)*c");
    EXPECT_TRUE(read(reader, {std::string(LineCutter::max_line_bytes, 'a')}).empty());
}

TEST(LineCutter, GivesTheSameLinesHoweverTheStreamIsCut) {
    std::string stream;
    std::vector<std::string> expected;
    std::mt19937 random(2);
    for (int i = 0; i < 500; ++i) {
        const std::string line(1 + random() % 40, static_cast<char>('a' + i % 26));
        expected.push_back(line);
        stream += line + (i % 3 == 0 ? "\r\n" : i % 3 == 1 ? "\r" : "\n");
    }
    for (int round = 0; round < 20; ++round) {
        LineCutter cutter;
        std::vector<std::string> lines;
        for (std::size_t at = 0; at < stream.size();) {
            const std::size_t size = 1 + random() % 100;
            cutter.feed(std::string_view(stream).substr(at, size),
                        [&](std::string_view line) { lines.emplace_back(line); });
            at += size;
        }
        EXPECT_EQ(lines, expected);
    }
}

TEST(LineCutter, TheLastLineNeedsNoEnd) {
    LineCutter cutter;
    std::vector<std::string> lines;
    const auto take = [&](std::string_view line) { lines.emplace_back(line); };
    cutter.feed("a\rb", take);
    cutter.finish(take);
    cutter.finish(take);
    EXPECT_EQ(lines, (std::vector<std::string>{"a", "b"}));
}

TEST(LineCutter, SkipsALineTooLongAndFindsTheNext) {
    LineCutter cutter;
    std::vector<std::string> lines;
    const auto take = [&](std::string_view line) { lines.emplace_back(line); };
    for (int i = 0; i < 10; ++i) {
        cutter.feed(std::string(LineCutter::max_line_bytes / 4, 'x'), take);
    }
    cutter.feed("\nshort\n", take);
    EXPECT_EQ(lines, std::vector<std::string>{"short"});
}

}  // namespace
}  // namespace joulemark::meter
