// SPDX-License-Identifier: Apache-2.0
#include "meter/message.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "core/csv.h"
#include "core/run_format.h"

namespace joulemark::meter {
namespace {

TEST(Message, ReadsEveryField) {
    const auto message = parse_message(
        R"({"event":"end","name":"epoch","index":3,"t":123456789012345678,"rank":2,"samples":1281167,"updates":5004,
            "tokens":0,"loss":2.5,"quality":{"name":"top1_error","value":0.24,"direction":"lower"},"data":{"a":[1]}})");
    ASSERT_TRUE(message);
    EXPECT_EQ(message->event, Message::Event::end);
    EXPECT_EQ(message->name, "epoch");
    EXPECT_EQ(message->index, 3);
    EXPECT_EQ(message->time_ns, 123456789012345678);  // more digits than a double holds
    EXPECT_EQ(message->rank, 2);
    EXPECT_EQ(message->samples, 1281167);
    EXPECT_EQ(message->tokens, 0);
    EXPECT_EQ(message->loss, 2.5);
    EXPECT_EQ(message->quality_name, "top1_error");
    EXPECT_EQ(message->quality, 0.24);
    EXPECT_EQ(message->quality_direction, "lower");
    EXPECT_EQ(message->data, R"({"a":[1]})");
}

TEST(Message, NeedsOnlyTheEvent) {
    const auto message = parse_message(R"({"event":"begin"})");
    ASSERT_TRUE(message);
    EXPECT_EQ(message->name, "epoch");
    EXPECT_FALSE(message->index);
    EXPECT_FALSE(message->samples);
}

TEST(Message, IgnoresFieldsOfTheWrongType) {
    const auto message =
        parse_message(R"({"event":"end","samples":"many","loss":null,"index":"x","quality":7,"data":3})");
    ASSERT_TRUE(message);
    EXPECT_FALSE(message->samples);
    EXPECT_FALSE(message->loss);
    EXPECT_FALSE(message->index);
    EXPECT_FALSE(message->quality);
    EXPECT_EQ(message->data, "");
}

TEST(Message, RefusesWhatIsNoMessage) {
    for (const char* text : {"", "{", "[]", "7", "null", "{}", R"({"event":7})", R"({"event":"start"})",
                             "\xff\xfe", R"({"event":"begin","rank":-1})", R"({"event":"begin","rank":1e12})",
                             R"({"event":"begin","name":"joulemark.command"})",
                             R"({"event":"begin","name":""})", R"({"event":"end","name":7})",
                             R"({"event":"lost"})", R"({"event":"lost","count":0})",
                             R"({"event":"lost","count":"many"})", R"({"event":"begin"} x)",
                             R"({"event":"config"})", R"({"event":"config","data":[1,2]})",
                             R"({"event":"note","data":"text"})"}) {
        const auto message = parse_message(text);
        EXPECT_FALSE(message) << text;
        EXPECT_FALSE(!message && message.failure().reason.empty()) << text;
    }
}

TEST(Message, SurvivesAnyBytes) {
    std::mt19937 random(1);
    const std::string valid =
        R"({"event":"end","name":"epoch","index":3,"quality":{"name":"q","value":1},"data":{}})";
    for (int i = 0; i < 20'000; ++i) {
        std::string text = valid;
        for (int change = 0; change < 3; ++change) {
            text[random() % text.size()] = static_cast<char>(random());
        }
        text.resize(random() % (text.size() + 1));
        parse_message(text);
    }
}

TEST(Message, ComesBackFromItsOwnJson) {
    const auto message = parse_message(
        R"({"event":"end","name":"a \"b\"","index":1,"t":5,"rank":7,"samples":1.5,"updates":2,)"
        R"("tokens":3,"loss":0.1,"quality":{"name":"q","value":0.5,"direction":"higher"},"data":{"k":"v"}})");
    ASSERT_TRUE(message);
    const auto again = parse_message(to_json(*message));
    ASSERT_TRUE(again);
    EXPECT_EQ(to_csv(*again, 5), to_csv(*message, 5));
    EXPECT_EQ(again->time_ns, 5);
}

TEST(Message, BecomesOneLineWithEveryColumn) {
    const auto message = parse_message(R"({"event":"note","data":{"text":"two\nlines, and \"quotes\""}})");
    ASSERT_TRUE(message);
    const std::string line = to_csv(*message, 42);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    std::vector<std::string> cells;
    csv::split(line.substr(0, line.size() - 1), cells);
    ASSERT_EQ(cells.size(), run_format::region_columns.size());
    EXPECT_EQ(cells[0], "42");
    EXPECT_EQ(cells[1], "note");
    EXPECT_EQ(cells[13], R"({"text":"two\nlines, and \"quotes\""})");
}

Message edge(Message::Event event, int rank = 0, std::optional<std::int64_t> index = {}) {
    Message message;
    message.event = event;
    message.name = "epoch";
    message.rank = rank;
    message.index = index;
    return message;
}

TEST(MessageIndex, CountsPerNameAndRank) {
    MessageIndex index;
    using enum Message::Event;
    EXPECT_EQ(index.of(edge(begin)), 0);
    EXPECT_EQ(index.of(edge(begin, 1)), 0);
    EXPECT_EQ(index.of(edge(end)), 0);
    EXPECT_EQ(index.of(edge(begin)), 1);
    EXPECT_EQ(index.of(edge(end)), 1);
    EXPECT_EQ(index.of(edge(end, 1)), 0);
}

TEST(MessageIndex, FollowsTheProgramsOwnNumbers) {
    MessageIndex index;
    using enum Message::Event;
    EXPECT_EQ(index.of(edge(begin, 0, 5)), 5);
    EXPECT_EQ(index.of(edge(end)), 5);
    EXPECT_EQ(index.of(edge(begin)), 6);
    EXPECT_EQ(index.of(edge(end, 0, 6)), 6);
    EXPECT_EQ(index.of(edge(end)), 7) << "an end whose begin was lost must not be taken for another epoch's";
}

TEST(MessageIndex, RegionsOfOneNameNest) {
    MessageIndex index;
    using enum Message::Event;
    EXPECT_EQ(index.of(edge(begin)), 0);
    EXPECT_EQ(index.of(edge(begin)), 1);
    EXPECT_EQ(index.of(edge(begin, 0, 7)), 7);
    EXPECT_EQ(index.of(edge(end, 0, 1)), 1) << "not the innermost";
    EXPECT_EQ(index.of(edge(end)), 7);
    EXPECT_EQ(index.of(edge(end)), 0);
    EXPECT_EQ(index.of(edge(begin)), 8);
    EXPECT_EQ(index.repeated(), 0U);
}

TEST(MessageIndex, AnAbortClosesAsAnEndDoes) {
    MessageIndex index;
    using enum Message::Event;
    EXPECT_EQ(index.of(edge(begin)), 0);
    EXPECT_EQ(index.of(edge(begin)), 1);
    EXPECT_EQ(index.of(edge(abort)), 1);
    EXPECT_EQ(index.of(edge(end)), 0);
    EXPECT_EQ(parse_message(to_json(edge(abort, 2, 7)))->event, abort);
}

TEST(MessageIndex, NoticesAnIndexThatComesAgain) {
    MessageIndex index;
    using enum Message::Event;
    for (const std::int64_t number : {0, 1, 2, 5, 4, 3, -1}) {
        index.of(edge(begin, 0, number));
        index.of(edge(end, 0, number));
        index.of(edge(begin, 1, number));  // of every rank is no repetition
    }
    EXPECT_EQ(index.repeated(), 0U);
    for (const std::int64_t number : {5, 0, 3, -1}) {
        index.of(edge(begin, 0, number));
    }
    EXPECT_EQ(index.repeated(), 4U);
    index.of(edge(begin, 0, 6));
    EXPECT_EQ(index.repeated(), 4U);
}

TEST(Message, NegativeCountsAreLeftOut) {
    auto message = parse_message(R"({"event":"end","samples":-500,"tokens":-1,"updates":0,"loss":-2})");
    ASSERT_TRUE(message);
    EXPECT_EQ(drop_negative_counts(*message), 2);
    EXPECT_FALSE(message->samples);
    EXPECT_FALSE(message->tokens);
    EXPECT_EQ(message->updates, 0);
    EXPECT_EQ(message->loss, -2);
    EXPECT_EQ(drop_negative_counts(*message), 0);
}

}  // namespace
}  // namespace joulemark::meter
