// SPDX-License-Identifier: Apache-2.0
#include "data/make_vocabulary.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/wordpiece.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(MakeVocabulary, MergesTheMostFrequentNeighboursFirst) {
    // Pairs at first: a ##b 9, ##b ##c 5, x ##y 3. "ab" is merged, then "abc", then "xy".
    const WordCounts counts = {{"ab", 4}, {"abc", 5}, {"xy", 3}};
    EXPECT_THAT(train_vocabulary(counts, 17),
                ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "x", "y", "##a",
                            "##b", "##c", "##x", "##y", "ab", "abc"));
    EXPECT_THAT(train_vocabulary(counts, 100), Contains("xy"));
}

TEST(MakeVocabulary, CountsOverlappingPairsAsTheyAreMerged) {
    // aaaaa is a ##a ##a ##a ##a: three pairs of ##a ##a, of which two can be merged, the first into ##aa.
    const auto tokens = train_vocabulary({{"aaaaa", 7}}, 100);
    EXPECT_THAT(tokens, ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "##aa", "aaa",
                                    "aaaaa"));
}

TEST(MakeVocabulary, LeavesOutWhatOccursOnce) {
    EXPECT_THAT(train_vocabulary({{"once", 1}, {"two", 2}}, 100), Not(Contains("once")));
    EXPECT_THAT(train_vocabulary({{"once", 1}, {"two", 2}}, 100), Contains("two"));
}

TEST(MakeVocabulary, RefusesASizeBelowTheAlphabet) {
    EXPECT_THROW(train_vocabulary({{"abc", 2}}, 10), Error);
    EXPECT_EQ(train_vocabulary({{"abc", 2}}, 11).size(), 11U);
}

TEST(MakeVocabulary, WritesAFileWithWhichTheTextHasNoUnknownWord) {
    const TemporaryFolder folder;
    const auto text = folder.path() / "text.txt";
    std::ofstream(text) << "The cat sat on the mat.\n\nThe dog sät on the log!\n漢字 the the\n";
    EXPECT_EQ(count_words(text).at("the"), 6);
    EXPECT_EQ(count_words(text).at("sat"), 2);
    make_vocabulary(text, 90, folder.path() / "vocab.txt");
    const WordPiece vocabulary(folder.path() / "vocab.txt");
    EXPECT_LE(vocabulary.size(), 90);
    std::vector<TokenId> ids;
    TextEncoder(vocabulary).encode("the cat sat on the log 漢", ids);
    EXPECT_THAT(ids, Not(Contains(vocabulary.unknown)));
    EXPECT_EQ(std::ranges::count(ids, ids.front()), 2);  // "the" is one piece
}

}  // namespace
}  // namespace joulemark::train
