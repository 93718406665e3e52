// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::train {

/// Offset of the first byte that does not belong to well-formed UTF-8, or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// BERT's uncased normalisation and splitting, as transformers' BertTokenizer does them: control characters
/// go, accents go (canonical decomposition, category Mn), letters become lower case, white space separates,
/// every punctuation mark and every CJK ideograph is a word of its own. Categories are those of utf8proc's
/// Unicode version: characters younger than a reference's tables may differ. Keeps its buffers: one per
/// thread.
class BertWords {
  public:
    /// Calls `use` with every word of `text`, in order, and its number of characters. `text` is valid UTF-8.
    void split(std::string_view text, const std::function<void(std::string_view, std::size_t)>& use);

  private:
    std::vector<std::int32_t> characters_;
    std::string word_;
};

}  // namespace joulemark::train
