// SPDX-License-Identifier: Apache-2.0
#include "data/make_vocabulary.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "core/files.h"
#include "data/bert_words.h"
#include "data/text_file.h"
#include "data/wordpiece.h"

namespace joulemark::train {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;
constexpr std::size_t most_characters = 1000;
constexpr std::int64_t least_frequency = 2;

using Symbol = std::uint32_t;

struct Word {
    std::vector<Symbol> symbols;
    std::int64_t count = 0;
};

struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  ///< where it was seen; it may be gone from some
};

std::vector<std::string_view> characters_of(std::string_view word) {
    std::vector<std::string_view> characters;
    while (!word.empty()) {
        const auto continues = [&](std::size_t at) {
            return at < word.size() && (static_cast<unsigned char>(word[at]) & 0xC0) == 0x80;
        };
        std::size_t length = 1;
        while (continues(length)) {
            ++length;
        }
        characters.push_back(word.substr(0, length));
        word.remove_prefix(length);
    }
    return characters;
}

class Trainer {
  public:
    explicit Trainer(std::int64_t size) : size_(static_cast<std::size_t>(size)) {
        for (const std::string_view token :
             {pad_token, unknown_token, class_token, separator_token, mask_token}) {
            symbol(std::string(token));
        }
    }

    std::vector<std::string> train(const WordCounts& counts) {
        add_alphabet(counts);
        for (const auto& [text, count] : counts) {
            add_word(text, count);
        }
        for (std::uint32_t word = 0; word < words_.size(); ++word) {
            const auto& symbols = words_[word].symbols;
            for (std::size_t i = 1; i < symbols.size(); ++i) {
                change(symbols[i - 1], symbols[i], words_[word].count, word);
            }
        }
        while (tokens_.size() < size_ && merge_most_frequent()) {
        }
        return std::move(tokens_);
    }

  private:
    static std::uint64_t key(Symbol left, Symbol right) { return std::uint64_t{left} << 32 | right; }

    Symbol symbol(const std::string& token) {
        const auto [there, is_new] = symbols_.emplace(token, static_cast<Symbol>(tokens_.size()));
        if (is_new) {
            tokens_.push_back(token);
        }
        return there->second;
    }

    /// Every character can begin a word and continue one.
    void add_alphabet(const WordCounts& counts) {
        std::map<std::string_view, std::int64_t> frequency;
        for (const auto& [text, count] : counts) {
            for (const std::string_view character : characters_of(text)) {
                frequency[character] += count;
            }
        }
        std::vector<std::pair<std::string_view, std::int64_t>> ranked(frequency.begin(), frequency.end());
        std::ranges::stable_sort(ranked, std::greater<>(), &decltype(ranked)::value_type::second);
        ranked.resize(std::min(ranked.size(), most_characters));
        std::ranges::sort(ranked);
        for (const auto& [character, count] : ranked) {
            symbol(std::string(character));
        }
        for (const auto& [character, count] : ranked) {
            symbol("##" + std::string(character));
        }
        if (tokens_.size() > size_) {
            throw bad_input(
                "a vocabulary of {} tokens cannot hold the text's {} characters, each alone and with "
                "##: ask for at least {}",
                size_, ranked.size(), tokens_.size());
        }
    }

    void add_word(std::string_view text, std::int64_t count) {
        Word word{{}, count};
        for (const std::string_view character : characters_of(text)) {
            const auto found = symbols_.find((word.symbols.empty() ? "" : "##") + std::string(character));
            if (found == symbols_.end()) {
                return;  // a rare character: the word will be [UNK]
            }
            word.symbols.push_back(found->second);
        }
        words_.push_back(std::move(word));
    }

    void change(Symbol left, Symbol right, std::int64_t by, std::uint32_t word) {
        const std::uint64_t pair = key(left, right);
        Pair& entry = pairs_[pair];
        entry.count += by;
        if (by > 0) {
            entry.words.push_back(word);
            candidates_.emplace(entry.count, ~pair);
        }
    }

    bool merge_most_frequent() {
        while (!candidates_.empty()) {
            const auto [count, inverted] = candidates_.top();
            candidates_.pop();
            const auto found = pairs_.find(~inverted);
            if (found == pairs_.end() || found->second.count <= 0) {
                continue;
            }
            if (found->second.count != count) {
                // Queued with a count it no longer has; one that grew was queued again then.
                if (found->second.count < count) {
                    candidates_.emplace(found->second.count, inverted);
                }
                continue;
            }
            if (count < least_frequency) {
                return false;
            }
            merge(~inverted);
            return true;
        }
        return false;
    }

    void merge(std::uint64_t pair) {
        const auto left = static_cast<Symbol>(pair >> 32);
        const auto right = static_cast<Symbol>(pair);
        const Symbol merged = symbol(tokens_[left] + tokens_[right].substr(2));
        const std::vector<std::uint32_t> words = std::move(pairs_[pair].words);
        for (const std::uint32_t index : words) {
            auto& [symbols, count] = words_[index];
            std::size_t kept = 0;
            for (std::size_t i = 0; i < symbols.size(); ++i) {
                if (i + 1 == symbols.size() || symbols[i] != left || symbols[i + 1] != right) {
                    symbols[kept++] = symbols[i];
                    continue;
                }
                if (kept > 0) {
                    change(symbols[kept - 1], left, -count, index);
                    change(symbols[kept - 1], merged, count, index);
                }
                if (i + 2 < symbols.size()) {
                    change(right, symbols[i + 2], -count, index);
                    change(merged, symbols[i + 2], count, index);
                }
                symbols[kept++] = merged;
                ++i;
            }
            symbols.resize(kept);
        }
        pairs_.erase(pair);
    }

    std::size_t size_;
    std::vector<std::string> tokens_;
    std::unordered_map<std::string, Symbol> symbols_;
    std::vector<Word> words_;
    std::unordered_map<std::uint64_t, Pair> pairs_;
    /// Count and pair; the pair inverted, so that ties go to the older symbols.
    std::priority_queue<std::pair<std::int64_t, std::uint64_t>> candidates_;
};

}  // namespace

WordCounts count_words(const std::filesystem::path& text) {
    TextMap<std::int64_t> counts;
    TextFile file(text);
    BertWords words;
    for (std::string_view block = file.next(block_bytes); !block.empty(); block = file.next(block_bytes)) {
        for_each_line(block, [&](std::string_view line) {
            words.split(line, [&](std::string_view word, std::size_t) {
                const auto found = counts.find(word);
                if (found != counts.end()) {
                    ++found->second;
                } else {
                    counts.emplace(word, 1);
                }
            });
        });
    }
    return {counts.begin(), counts.end()};
}

std::vector<std::string> train_vocabulary(const WordCounts& counts, std::int64_t size) {
    return Trainer(size).train(counts);
}

void make_vocabulary(const std::filesystem::path& text, std::int64_t size,
                     const std::filesystem::path& output) {
    std::string content;
    for (const std::string& token : train_vocabulary(count_words(text), size)) {
        content += token + '\n';
    }
    files::write_atomically(output, content);
}

}  // namespace joulemark::train
