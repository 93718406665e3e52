// SPDX-License-Identifier: Apache-2.0
#include "data/wordpiece.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/bert_words.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path fixtures = std::filesystem::path(JOULEMARK_FIXTURES) / "train/wordpiece";

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    BertWords().split(text, [&](std::string_view word, std::size_t) { words.emplace_back(word); });
    return words;
}

WordPiece small_vocabulary() {
    return {{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "##a", "un##", "x"},
            "small"};
}

std::vector<TokenId> pieces_of(std::string_view word, std::size_t characters) {
    std::vector<TokenId> ids;
    small_vocabulary().encode_word(word, characters, ids);
    return ids;
}

std::string refusal(const std::string& vocabulary) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "vocab.txt";
    std::ofstream(path) << vocabulary;
    try {
        WordPiece made(path);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "";
}

TEST(WordPiece, GivesTheReferencesIdsOnDifficultLines) {
    const WordPiece vocabulary(fixtures / "vocab.txt");
    TextEncoder encoder(vocabulary);
    std::ifstream text(fixtures / "text.txt");
    std::ifstream expected(fixtures / "ids.txt");
    std::string line;
    std::string ids_line;
    int lines = 0;
    while (std::getline(text, line) && std::getline(expected, ids_line)) {
        std::istringstream fields(ids_line);
        const std::vector<TokenId> reference{std::istream_iterator<TokenId>(fields), {}};
        for (int time = 0; time < 2; ++time) {  // the second time from what the encoder remembers
            std::vector<TokenId> ids;
            encoder.encode(line, ids);
            EXPECT_EQ(ids, reference) << "line " << lines + 1 << ": " << line;
        }
        ++lines;
    }
    EXPECT_EQ(lines, 76);
}

TEST(BertWords, NormalisesAndSplits) {
    EXPECT_THAT(words_of("Hello,  Wörld!"), ElementsAre("hello", ",", "world", "!"));
    EXPECT_THAT(words_of("a\u200Bb \u00ADc\uFFFDd\x01"), ElementsAre("ab", "cd"));
    EXPECT_THAT(words_of("日本x語"), ElementsAre("日", "本", "x", "語"));
    EXPECT_THAT(words_of(" \t\r "), ElementsAre());
    std::size_t length = 0;
    BertWords().split("ÉÉ", [&](std::string_view, std::size_t characters) { length = characters; });
    EXPECT_EQ(length, 2U);
}

TEST(Utf8, FindsTheFirstByteThatIsWrong) {
    EXPECT_EQ(first_invalid_utf8("plain and ümläut 漢 😀"), std::nullopt);
    EXPECT_EQ(first_invalid_utf8("caf\xE9 au lait"), 3U);   // Latin-1
    EXPECT_EQ(first_invalid_utf8("ab\xC3"), 2U);            // cut
    EXPECT_EQ(first_invalid_utf8("a\xED\xA0\x80"), 1U);     // a surrogate
    EXPECT_EQ(first_invalid_utf8("a\xC0\xAF"), 1U);         // too long a form
    EXPECT_EQ(first_invalid_utf8("\xFF\xFE\x61\x00"), 0U);  // UTF-16
}

TEST(WordPiece, TakesTheLongestPieceFirst) {
    EXPECT_THAT(pieces_of("unaffable", 9), ElementsAre(5, 6, 7));
    EXPECT_THAT(pieces_of("una", 3), ElementsAre(5, 8));
    EXPECT_THAT(pieces_of("unknown", 7),
                ElementsAre(1));  // what remains has no piece: the whole word is unknown
    EXPECT_THAT(pieces_of("x", 100), ElementsAre(10));
    EXPECT_THAT(pieces_of("x", 101), ElementsAre(1));
}

TEST(WordPiece, ReadsAVocabularyWithAnyLineEnds) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "v") << "[PAD]\r\n[MASK]\r\n[UNK]\r\n[SEP]\r\n[CLS]\r\nword\r\n\r\n";
    const WordPiece vocabulary(folder.path() / "v");
    EXPECT_EQ(vocabulary.size(), 6);
    EXPECT_EQ(vocabulary.mask, 1);
    EXPECT_EQ(vocabulary.class_start, 4);
    EXPECT_EQ(vocabulary.token(5), "word");
}

TEST(WordPiece, RefusesAVocabularyThatIsNone) {
    EXPECT_THAT(refusal("[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n"), HasSubstr("vocab.txt has no [MASK]"));
    EXPECT_THAT(refusal(""), HasSubstr("has no [PAD]"));
    EXPECT_THAT(refusal("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\na\n"),
                HasSubstr("gives 'a' twice, in lines 6 and 8"));
    EXPECT_THROW(WordPiece("/none/vocab.txt"), Error);
}

TEST(WordPiece, HashFollowsEveryToken) {
    const auto hash = [](std::string last) {
        return WordPiece({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", std::move(last)}, "test").hash();
    };
    EXPECT_EQ(hash("b"), hash("b"));
    EXPECT_NE(hash("b"), hash("c"));
}

}  // namespace
}  // namespace joulemark::train
