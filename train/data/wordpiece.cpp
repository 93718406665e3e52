// SPDX-License-Identifier: Apache-2.0
#include "data/wordpiece.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::train {
namespace {

constexpr std::string_view continuation_mark = "##";
constexpr std::size_t longest_word = 100;          // characters
constexpr std::size_t remembered_words = 1 << 18;  // of a text's many words few are frequent

std::vector<std::string> read_lines(const std::filesystem::path& path) {
    const auto content = files::read(path);
    if (!content) {
        throw bad_input("cannot read the vocabulary {}: {}", path.string(), std::strerror(errno));
    }
    std::vector<std::string> lines;
    for (std::string_view rest = *content; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        lines.emplace_back(line);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    while (!lines.empty() && lines.back().empty()) {
        lines.pop_back();
    }
    return lines;
}

}  // namespace

WordPiece::WordPiece(const std::filesystem::path& vocabulary)
    : WordPiece(read_lines(vocabulary), vocabulary.string()) {}

WordPiece::WordPiece(std::vector<std::string> tokens, const std::string& origin)
    : tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        std::string_view piece = tokens_[i];
        const bool continues =
            piece.starts_with(continuation_mark) && piece.size() > continuation_mark.size();
        if (continues) {
            piece.remove_prefix(continuation_mark.size());
        }
        const auto [there, is_new] =
            (continues ? continuation_ : first_).emplace(piece, static_cast<TokenId>(i));
        if (!is_new) {
            throw bad_input("the vocabulary {} gives '{}' twice, in lines {} and {}", origin, tokens_[i],
                            there->second + 1, i + 1);
        }
        longest_ = std::max(longest_, piece.size());
    }
    pad = special(pad_token, origin);
    unknown = special(unknown_token, origin);
    class_start = special(class_token, origin);
    separator = special(separator_token, origin);
    mask = special(mask_token, origin);
}

TokenId WordPiece::special(std::string_view token, const std::string& origin) const {
    const auto found = first_.find(token);
    if (found == first_.end()) {
        throw bad_input(
            "the vocabulary {} has no {}: BERT's has one token a line, {} {} {} {} {} among them; "
            "joulemark-train make-vocab makes one from a text",
            origin, token, pad_token, unknown_token, class_token, separator_token, mask_token);
    }
    return found->second;
}

std::uint64_t WordPiece::hash() const {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const std::string& token : tokens_) {
        for (const char c : token) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
        }
        hash = (hash ^ '\n') * 0x100000001B3;
    }
    return hash;
}

void WordPiece::encode_word(std::string_view word, std::size_t characters, std::vector<TokenId>& ids) const {
    const std::size_t before = ids.size();
    if (characters <= longest_word) {
        while (!word.empty()) {
            const TextMap<TokenId>& pieces = ids.size() == before ? first_ : continuation_;
            std::size_t length = std::min(word.size(), longest_);
            auto found = pieces.find(word.substr(0, length));
            while (found == pieces.end() && --length > 0) {
                found = pieces.find(word.substr(0, length));
            }
            if (found == pieces.end()) {
                break;
            }
            ids.push_back(found->second);
            word.remove_prefix(length);
        }
    }
    if (!word.empty()) {
        ids.resize(before);
        ids.push_back(unknown);
    }
}

void TextEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
    words_.split(text, [&](std::string_view word, std::size_t characters) {
        const auto known = met_.find(word);
        if (known != met_.end()) {
            ids.insert(ids.end(), known->second.begin(), known->second.end());
            return;
        }
        pieces_.clear();
        vocabulary_.encode_word(word, characters, pieces_);
        ids.insert(ids.end(), pieces_.begin(), pieces_.end());
        if (met_.size() < remembered_words) {
            met_.emplace(word, pieces_);
        }
    });
}

}  // namespace joulemark::train
