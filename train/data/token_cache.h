// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "data/text_file.h"
#include "data/wordpiece.h"

namespace joulemark::train {

/// A text as token ids in a binary file, so that it is tokenised once: every line that holds a word, ended by
/// [SEP]. Little endian: a header of 64 bytes (token_cache.cpp), then the ids, of 16 bits where the
/// vocabulary allows it, else of 32.
class TokenCache {
  public:
    /// Opens the cache of `text`; makes it first when it is missing, torn, or of a text of another size or
    /// time or of another vocabulary. Of several ranks that come at once one makes it and the others wait for
    /// it. It is called NAME.HASH.tokens and stands in `folder`, beside the text when that is empty. Throws
    /// bad_input as TextFile does, environment_error when it cannot be written.
    static TokenCache open(const std::filesystem::path& text, const WordPiece& vocabulary,
                           const std::filesystem::path& folder, int threads);

    std::size_t size() const { return tokens_; }
    /// Of the number of tokens and of some of them, evenly spread.
    std::string digest() const;
    TokenId operator[](std::size_t at) const {
        return wide_ != nullptr ? static_cast<TokenId>(wide_[at]) : static_cast<TokenId>(narrow_[at]);
    }

  private:
    TokenCache(MappedFile file, std::size_t tokens, bool wide);

    MappedFile file_;
    std::size_t tokens_;
    const std::uint16_t* narrow_ = nullptr;
    const std::uint32_t* wide_ = nullptr;
};

}  // namespace joulemark::train
