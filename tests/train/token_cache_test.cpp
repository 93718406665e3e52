// SPDX-License-Identifier: Apache-2.0
#include "data/token_cache.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "core/error.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::vector<std::string> tokens_with(std::size_t size) {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b"};
    while (tokens.size() < size) {
        tokens.push_back("t" + std::to_string(tokens.size()));
    }
    return tokens;
}

class TokenCacheTest : public testing::Test {
  protected:
    void write(std::string_view content) { std::ofstream(text_) << content; }

    std::vector<TokenId> ids(const WordPiece& vocabulary, int threads = 1) {
        const TokenCache cache = TokenCache::open(text_, vocabulary, {}, threads);
        std::vector<TokenId> all;
        for (std::size_t i = 0; i < cache.size(); ++i) {
            all.push_back(cache[i]);
        }
        return all;
    }

    std::vector<fs::path> caches() const {
        std::vector<fs::path> found;
        for (const auto& entry : fs::directory_iterator(folder_.path())) {
            if (entry.path() != text_) {
                found.push_back(entry.path());
            }
        }
        return found;
    }

    std::string refusal() {
        try {
            ids(small_);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    TemporaryFolder folder_;
    fs::path text_ = folder_.path() / "text";
    WordPiece small_{tokens_with(8), "small"};
};

TEST_F(TokenCacheTest, HoldsEveryLineThatHasAWordEndedBySeparators) {
    write("a b\n\n  \nab z\n\x01\nb");
    EXPECT_THAT(ids(small_), ElementsAre(5, 6, 3, 5, 7, 1, 3, 6, 3));
}

TEST_F(TokenCacheTest, IsMadeOnceAndAgainWhenTextOrVocabularyChange) {
    write("a a");
    EXPECT_THAT(ids(small_), ElementsAre(5, 5, 3));
    ASSERT_EQ(caches().size(), 1U);
    const auto first = caches().front();
    const auto made = fs::last_write_time(first);
    EXPECT_THAT(ids(small_), ElementsAre(5, 5, 3));
    EXPECT_EQ(fs::last_write_time(first), made);

    const auto time = fs::last_write_time(text_);
    write("b b");
    fs::last_write_time(text_, time + std::chrono::seconds(1));  // of the same size
    EXPECT_THAT(ids(small_), ElementsAre(6, 6, 3));
    EXPECT_EQ(caches().size(), 1U);

    ids(WordPiece(tokens_with(9), "larger"));
    EXPECT_EQ(caches().size(), 2U);
}

TEST_F(TokenCacheTest, IsMadeAgainWhenTornAndWhenAnotherFileHasItsName) {
    write("a b a");
    ids(small_);
    const auto cache = caches().front();
    for (const std::uintmax_t size :
         {fs::file_size(cache) - 1, std::uintmax_t{64}, std::uintmax_t{10}, std::uintmax_t{0}}) {
        fs::resize_file(cache, size);
        EXPECT_THAT(ids(small_), ElementsAre(5, 6, 5, 3)) << size;
    }
    std::ofstream(cache) << std::string(72, 'x');
    EXPECT_THAT(ids(small_), ElementsAre(5, 6, 5, 3));
    // What a killed rank left is no obstacle.
    std::ofstream(cache.string() + ".draft") << "half of it";
    fs::remove(cache);
    EXPECT_THAT(ids(small_), ElementsAre(5, 6, 5, 3));
    EXPECT_EQ(caches().size(), 1U);
}

TEST_F(TokenCacheTest, NeedsMoreBitsForALargeVocabulary) {
    write("a t70000");
    const WordPiece large(tokens_with(70'001), "large");
    EXPECT_THAT(ids(large), ElementsAre(5, 70'000, 3));
}

TEST_F(TokenCacheTest, DoesNotDependOnTheNumberOfThreads) {
    std::string lines;
    for (int i = 0; lines.size() < 5'000'000; ++i) {
        lines += (i % 3 == 0 ? "a b ab" : "bb a") + std::string(static_cast<std::size_t>(i % 7), ' ') + "\n";
    }
    write(lines);
    const auto one = ids(small_);
    fs::remove(caches().front());
    EXPECT_EQ(ids(small_, 3), one);
}

TEST_F(TokenCacheTest, IsMadeByOneOfManyThatComeAtOnce) {
    std::string lines;
    for (int i = 0; i < 20'000; ++i) {
        lines += "a b ab a\n";
    }
    write(lines);
    std::vector<std::size_t> sizes(6);
    {
        std::vector<std::jthread> ranks;
        for (std::size_t& size : sizes) {
            ranks.emplace_back([&] { size = ids(small_).size(); });
        }
    }
    EXPECT_THAT(sizes, testing::Each(20'000U * 6U));
    EXPECT_EQ(caches().size(), 1U);  // and no draft is left
}

TEST_F(TokenCacheTest, SaysWhatIsWrongWithATextAndLeavesNothing) {
    write("fine\ncaf\xE9\n");
    EXPECT_THAT(refusal(), testing::AllOf(HasSubstr(text_.string()), HasSubstr("0xE9 at offset 8")));
    write(" \n\n");
    EXPECT_THAT(refusal(), HasSubstr("is empty"));
    write("");
    EXPECT_THAT(refusal(), HasSubstr("is empty"));
    write("\x01\n");
    EXPECT_THAT(refusal(), HasSubstr("holds no words"));
    EXPECT_THAT(caches(), ElementsAre());
    fs::remove(text_);
    EXPECT_THAT(refusal(), HasSubstr("No such file"));
    EXPECT_THROW(MappedFile file(folder_.path()), Error);
}

TEST_F(TokenCacheTest, SkipsAByteOrderMarkAndCanStandInAnotherFolder) {
    write(
        "\xEF\xBB\xBF"
        "a\n");
    const auto elsewhere = folder_.path() / "deep" / "er";
    const TokenCache cache = TokenCache::open(text_, small_, elsewhere, 1);
    EXPECT_EQ(cache.size(), 2U);
    EXPECT_FALSE(fs::is_empty(elsewhere));
}

}  // namespace
}  // namespace joulemark::train
