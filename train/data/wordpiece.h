// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bert_words.h"

namespace joulemark::train {

using TokenId = std::int32_t;

/// The tokens that BERT's scheme cannot do without, in the order in which a trained vocabulary begins.
inline constexpr std::string_view pad_token = "[PAD]";
inline constexpr std::string_view unknown_token = "[UNK]";
inline constexpr std::string_view class_token = "[CLS]";
inline constexpr std::string_view separator_token = "[SEP]";
inline constexpr std::string_view mask_token = "[MASK]";

/// Lets maps of strings be asked with string views.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// A WordPiece vocabulary (Wu et al. 2016, as BERT uses it): a word is cut greedily into the longest pieces
/// there are, those after the first written with "##".
class WordPiece {
  public:
    /// vocab.txt: one token a line, its number the line's. Throws bad_input naming the file: not readable, a
    /// token given twice, one of the special tokens missing.
    explicit WordPiece(const std::filesystem::path& vocabulary);
    /// `origin` is what sentences call it.
    WordPiece(std::vector<std::string> tokens, const std::string& origin);

    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    const std::string& token(TokenId id) const { return tokens_[static_cast<std::size_t>(id)]; }
    /// FNV-1a over all tokens: tells whether ids made earlier still mean the same.
    std::uint64_t hash() const;

    TokenId pad = 0;
    TokenId unknown = 0;
    TokenId class_start = 0;  ///< [CLS]
    TokenId separator = 0;
    TokenId mask = 0;

    /// Appends the pieces of one word as BertWords gives it; [UNK] for one of more than 100 characters or one
    /// that cannot be cut.
    void encode_word(std::string_view word, std::size_t characters, std::vector<TokenId>& ids) const;

  private:
    TokenId special(std::string_view token, const std::string& origin) const;

    std::vector<std::string> tokens_;
    TextMap<TokenId> first_;         ///< pieces that begin a word
    TextMap<TokenId> continuation_;  ///< the others, without their "##"
    std::size_t longest_ = 0;
};

/// From text to token ids, without [CLS] and [SEP]. Remembers the words it has met: one per thread.
class TextEncoder {
  public:
    explicit TextEncoder(const WordPiece& vocabulary) : vocabulary_(vocabulary) {}

    /// Appends the ids of `text`, which is valid UTF-8.
    void encode(std::string_view text, std::vector<TokenId>& ids);

  private:
    const WordPiece& vocabulary_;
    BertWords words_;
    TextMap<std::vector<TokenId>> met_;
    std::vector<TokenId> pieces_;
};

}  // namespace joulemark::train
