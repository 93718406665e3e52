// SPDX-License-Identifier: Apache-2.0
#include "data/bert_words.h"

#include <algorithm>
#include <array>

#include <utf8proc.h>

#include "core/error.h"

namespace joulemark::train {
namespace {

enum class Kind : std::uint8_t { letter, drop, space, alone };

struct Range {
    std::int32_t first;
    std::int32_t last;
};

bool is_ideograph(std::int32_t c) {
    // What BERT calls CJK: the ideographs' blocks, not kana or hangul.
    static constexpr std::array<Range, 8> blocks = {{{0x3400, 0x4DBF},
                                                     {0x4E00, 0x9FFF},
                                                     {0xF900, 0xFAFF},
                                                     {0x20000, 0x2A6DF},
                                                     {0x2A700, 0x2B73F},
                                                     {0x2B740, 0x2B81F},
                                                     {0x2B820, 0x2CEAF},
                                                     {0x2F800, 0x2FA1F}}};
    return std::ranges::any_of(blocks,
                               [&](const Range& block) { return c >= block.first && c <= block.last; });
}

Kind kind_of(std::int32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') {
        return Kind::space;
    }
    // ASCII symbols such as $ and ^ count as punctuation, whatever their category.
    if ((c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
        (c >= '{' && c <= '~') || is_ideograph(c)) {
        return Kind::alone;
    }
    if (c == 0xFFFD) {  // what a decoder put for something unreadable
        return Kind::drop;
    }
    switch (utf8proc_category(c)) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_MN:
            return Kind::drop;
        case UTF8PROC_CATEGORY_ZS:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
            return Kind::space;
        case UTF8PROC_CATEGORY_PC:
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO:
            return Kind::alone;
        default:
            return Kind::letter;
    }
}

/// Most characters of most texts: no library call for them.
struct Ascii {
    std::array<Kind, 128> kind;
    std::array<char, 128> lower;
};
const Ascii& ascii() {
    static const Ascii table = [] {
        Ascii made{};
        for (std::size_t c = 0; c < made.kind.size(); ++c) {
            made.kind[c] = kind_of(static_cast<std::int32_t>(c));
            made.lower[c] = static_cast<char>(utf8proc_tolower(static_cast<std::int32_t>(c)));
        }
        return made;
    }();
    return table;
}

void append_utf8(std::string& text, std::int32_t character) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto length = utf8proc_encode_char(character, bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

/// Canonical decomposition of valid UTF-8.
void decompose(std::string_view text, std::vector<std::int32_t>& characters) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto size = static_cast<utf8proc_ssize_t>(text.size());
    characters.resize(std::max(characters.size(), text.size() + 1));
    for (;;) {
        const auto room = static_cast<utf8proc_ssize_t>(characters.size());
        const auto needed = utf8proc_decompose(bytes, size, characters.data(), room, UTF8PROC_DECOMPOSE);
        if (needed < 0) {
            throw environment_error("decomposing a text failed: {}", utf8proc_errmsg(needed));
        }
        characters.resize(static_cast<std::size_t>(needed));
        if (needed <= room) {
            return;
        }
    }
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    std::size_t at = 0;
    while (at < text.size()) {
        if (bytes[at] < 0x80) {
            ++at;
            continue;
        }
        utf8proc_int32_t character = 0;
        const auto length =
            utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
        if (length <= 0) {
            return at;
        }
        at += static_cast<std::size_t>(length);
    }
    return std::nullopt;
}

void BertWords::split(std::string_view text, const std::function<void(std::string_view, std::size_t)>& use) {
    std::size_t length = 0;
    const auto end_word = [&] {
        if (length > 0) {
            use(word_, length);
        }
        word_.clear();
        length = 0;
    };
    word_.clear();
    const auto take = [&](Kind kind, const auto& append) {
        if (kind == Kind::drop) {
            return;
        }
        if (kind != Kind::letter) {
            end_word();
        }
        if (kind != Kind::space) {
            append();
            ++length;
        }
        if (kind == Kind::alone) {
            end_word();
        }
    };
    const Ascii& table = ascii();
    const auto take_ascii = [&](std::size_t c) { take(table.kind[c], [&] { word_ += table.lower[c]; }); };

    if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; })) {
        for (const char c : text) {
            take_ascii(static_cast<unsigned char>(c));
        }
    } else {
        decompose(text, characters_);
        for (const std::int32_t c : characters_) {
            if (c < 128) {
                take_ascii(static_cast<std::size_t>(c));
            } else {
                take(kind_of(c), [&] { append_utf8(word_, utf8proc_tolower(c)); });
            }
        }
    }
    end_word();
}

}  // namespace joulemark::train
