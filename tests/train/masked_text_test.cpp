// SPDX-License-Identifier: Apache-2.0
#include "data/masked_text.h"

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t word_count = 40;

Masking masking_of(std::int64_t length, double share = 0.15) {
    Masking masking;
    masking.vocabulary = SyntheticText::first_word + word_count;
    masking.length = length;
    masking.share = share;
    masking.seed = 9;
    return masking;
}

std::vector<std::int64_t> values(const torch::Tensor& tensor) {
    const torch::Tensor flat = tensor.to(torch::kInt64).flatten().contiguous();
    return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// The ids before masking.
std::vector<std::int64_t> restored(const Sample& sample) {
    auto ids = values(sample[0]);
    const auto places = values(sample[1]);
    const auto labels = values(sample[2]);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (labels[i] >= 0) {
            ids[static_cast<std::size_t>(places[i])] = labels[i];
        }
    }
    return ids;
}

/// Word i of w0 .. w39 has the id 5 + i.
TokenCache tokens_of(const std::string& text) {
    static const WordPiece vocabulary = [] {
        std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
        for (std::int64_t i = 0; i < word_count; ++i) {
            tokens.push_back("w" + std::to_string(i));
        }
        return WordPiece(tokens, "test");
    }();
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "text") << text;
    return TokenCache::open(folder.path() / "text", vocabulary, {}, 1);  // stays mapped
}

TEST(MaskedText, MasksAFixedShareOfTheWordsAndNothingElse) {
    const SyntheticText text(200, masking_of(66), true);
    std::map<std::string, int> fate;
    for (std::uint32_t index = 0; index < text.size(); ++index) {
        const Sample sample = *text.load(index, 0);
        const auto ids = values(sample[0]);
        const auto places = values(sample[1]);
        const auto labels = values(sample[2]);
        ASSERT_EQ(places.size(), 10U);  // 15 % of 64, rounded
        EXPECT_EQ(std::set(places.begin(), places.end()).size(), 10U);
        for (std::size_t i = 0; i < places.size(); ++i) {
            EXPECT_GE(labels[i], SyntheticText::first_word);  // neither [CLS] nor [SEP] nor padding
            const std::int64_t now = ids[static_cast<std::size_t>(places[i])];
            ++fate[now == 4 ? "mask" : now == labels[i] ? "kept" : "random"];
        }
        EXPECT_EQ(ids.front(), 2);
        EXPECT_EQ(ids.back(), 3);
    }
    // Of 2000; a random token is [MASK] or the old one now and then. Four standard deviations.
    EXPECT_NEAR(fate["mask"], 1600 + 200 / 45, 4 * std::sqrt(2000 * 0.8 * 0.2));
    EXPECT_NEAR(fate["random"], 200 * 43 / 45, 4 * std::sqrt(2000 * 0.1 * 0.9));
    EXPECT_NEAR(fate["kept"], 200 + 200 / 45, 4 * std::sqrt(2000 * 0.1 * 0.9));
}

TEST(MaskedText, DrawsAnewInEveryEpochAndTheSameForTheSameKey) {
    const SyntheticText text(8, masking_of(32), true);
    EXPECT_EQ(values((*text.load(3, 1))[0]), values((*text.load(3, 1))[0]));
    EXPECT_NE(values((*text.load(3, 1))[1]), values((*text.load(3, 2))[1]));
    EXPECT_EQ(restored(*text.load(3, 1)), restored(*text.load(3, 2)));
    Masking validation = masking_of(32);
    validation.split = Split::validation;
    EXPECT_NE(restored(*SyntheticText(8, validation, true).load(3, 1)), restored(*text.load(3, 1)));
}

TEST(MaskedText, CollatesRowsOfTheWholeBatchAndMarksPadding) {
    const LineText text(tokens_of("w0 w1 w2 w3 w4 w5 w6\nw7 w8 w9\n"), masking_of(10, 0.25));
    ASSERT_EQ(text.size(), 2U);
    EXPECT_THAT(restored(*text.load(0, 0)), ElementsAre(2, 5, 6, 7, 8, 9, 10, 11, 3, 0));
    EXPECT_THAT(restored(*text.load(1, 0)), ElementsAre(2, 12, 13, 14, 3, 0, 0, 0, 0, 0));
    const std::vector<Sample> samples = {*text.load(0, 0), *text.load(1, 0)};
    const Batch batch = text.collate(samples, false);
    EXPECT_EQ(batch.samples, 2);
    EXPECT_EQ(batch.tokens, 14);
    ASSERT_EQ(batch.inputs.size(), 3U);
    EXPECT_EQ(batch.inputs[0].sizes(), (std::vector<std::int64_t>{2, 10}));
    EXPECT_EQ(values(batch.inputs[2].sum(1)), (std::vector<std::int64_t>{9, 5}));
    // Two of seven words in the first line, one of three in the second, whose other place stays free.
    const auto rows = values(batch.inputs[1]);
    const auto labels = values(batch.target);
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(labels[3], -100);
    EXPECT_GE(labels[2], 12);
    EXPECT_EQ(rows[2], 10 + labels[2] - 12 + 1);
    EXPECT_EQ(rows[0], labels[0] - 5 + 1);
}

TEST(PackedText, CutsOneStreamWithoutPaddingOrOverlap) {
    const PackedText text(tokens_of("w0 w1 w2\nw3 w4 w5 w6\nw7 w8\n"), masking_of(8), "test");
    ASSERT_EQ(text.size(), 2U);
    EXPECT_THAT(restored(*text.load(0, 0)), ElementsAre(2, 5, 6, 7, 3, 8, 9, 3));
    EXPECT_THAT(restored(*text.load(1, 0)), ElementsAre(2, 10, 11, 3, 12, 13, 3, 3));
    EXPECT_EQ(text.collate({*text.load(0, 0), *text.load(1, 0)}, false).inputs.size(),
              2U);  // nothing is padding
    EXPECT_EQ(text.collate({*text.load(0, 0)}, false).tokens, 8);
}

TEST(PackedText, RefusesATextShorterThanASequence) {
    try {
        PackedText(tokens_of("w0 w1\n"), masking_of(8), "small.txt");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("small.txt has 3 tokens, less than one sequence of 8"));
    }
}

TEST(LineText, CutsLongLinesAndCanMaskTheShortest) {
    const LineText text(tokens_of("w0 w1 w2 w3 w4 w5 w6 w7 w8\nw9\n"), masking_of(8));
    EXPECT_THAT(restored(*text.load(0, 0)), ElementsAre(2, 5, 6, 7, 8, 9, 10, 3));
    const Sample shortest = *text.load(1, 0);
    EXPECT_THAT(values(shortest[1]), ElementsAre(1));
    EXPECT_THAT(values(shortest[2]), ElementsAre(14));
}

TEST(SyntheticText, HasZipfsFrequenciesAndWikiTextsLines) {
    const SyntheticText packed(400, masking_of(128), true);
    std::map<std::int64_t, double> seen;
    for (std::uint32_t i = 0; i < packed.size(); ++i) {
        for (const std::int64_t id : restored(*packed.load(i, 0))) {
            ++seen[id];
        }
    }
    EXPECT_NEAR(seen[5] / seen[5 + 9], (10 + 2.7) / (1 + 2.7), 0.3);
    EXPECT_EQ(seen.rbegin()->first, SyntheticText::first_word + word_count - 1);

    const SyntheticText lines(20'000, masking_of(1024), false);
    double tokens = 0;
    for (std::uint32_t i = 0; i < lines.size(); i += 10) {
        tokens += static_cast<double>(values((*lines.load(i, 0))[3]).front() - 2);
    }
    EXPECT_NEAR(tokens / 2000, 1.15 * 88.6, 10);
}

}  // namespace
}  // namespace joulemark::train
