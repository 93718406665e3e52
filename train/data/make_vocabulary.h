// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace joulemark::train {

/// How often each word (BertWords) occurs in a text.
using WordCounts = std::map<std::string, std::int64_t>;
WordCounts count_words(const std::filesystem::path& text);

/// A WordPiece vocabulary of at most `size` tokens, special ones first: the characters (the 1000 most
/// frequent at most), then pieces by merging, again and again, the pair of neighbours that is most frequent
/// within words, while one occurs twice (Sennrich et al. 2016; the recipe of the tokenizers library's
/// WordPiece trainer). The same counts give the same vocabulary. Throws bad_input when `size` cannot hold the
/// characters.
std::vector<std::string> train_vocabulary(const WordCounts& counts, std::int64_t size);

/// Reads a text, writes vocab.txt.
void make_vocabulary(const std::filesystem::path& text, std::int64_t size,
                     const std::filesystem::path& output);

}  // namespace joulemark::train
