// SPDX-License-Identifier: Apache-2.0
#include "data/text_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/files.h"
#include "data/bert_words.h"

namespace joulemark::train {

MappedFile::MappedFile(const std::filesystem::path& path) {
    const auto fail = [&](int error) {
        throw bad_input("cannot read {}: {}", path.string(), std::strerror(error));
    };
    const files::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) {
        fail(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        fail(S_ISDIR(status.st_mode) ? EISDIR : ENODEV);
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) {
        return;  // which cannot be mapped
    }
    void* address = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) {
        fail(errno);
    }
    data_ = static_cast<const char*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
    if (data_ != nullptr) {
        munmap(const_cast<char*>(data_), size_);
    }
}

namespace {

/// The name that iconv has for the text's encoding when it is UTF-16: by its byte-order mark, or because every
/// second byte of its beginning is 0, as in any language that is written in Latin letters.
std::optional<std::string_view> utf16_name(std::string_view text) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
        return "UTF-16";
    }
    std::array<std::size_t, 2> zeros{};
    const std::string_view begin = text.substr(0, 1024);
    for (std::size_t i = 0; i < begin.size(); ++i) {
        zeros[i % 2] += begin[i] == '\0' ? 1 : 0;
    }
    const std::size_t many = begin.size() / 4;  // half of either's places
    if (zeros[1] > many && zeros[0] < zeros[1] / 2) {
        return "UTF-16LE";
    }
    return zeros[0] > many && zeros[1] < zeros[0] / 2 ? std::optional<std::string_view>("UTF-16BE") : std::nullopt;
}

/// Whether `rest`, where UTF-8 ends to be valid, is the beginning of a character that the text's end cuts.
bool is_cut_character(std::string_view rest) {
    const auto first = static_cast<unsigned char>(rest.front());
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    return first >= 0xC2 && first <= 0xF4 && rest.size() < length &&
           std::ranges::all_of(rest.substr(1), [](char byte) { return (byte & 0xC0) == 0x80; });
}

}  // namespace

TextFile::TextFile(const std::filesystem::path& path) : path_(path), file_(path) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (file_.bytes().starts_with(byte_order_mark)) {
        at_ = byte_order_mark.size();
    }
    if (const auto encoding = utf16_name(file_.bytes())) {
        throw bad_input("the text {} is in {}, not in UTF-8: convert it first, as with iconv -f {} -t UTF-8",
                        path.string(), *encoding, *encoding);
    }
    if (file_.bytes().find_first_not_of(" \t\r\n", at_) == std::string_view::npos) {
        throw bad_input("the text {} is empty", path.string());
    }
}

std::string_view TextFile::next(std::size_t bytes) {
    const std::string_view rest = file_.bytes().substr(at_);
    std::size_t size = std::min(bytes, rest.size());
    if (size < rest.size()) {
        const std::size_t line_end = rest.find('\n', size);
        size = line_end == std::string_view::npos ? rest.size() : line_end + 1;
    }
    const std::string_view part = rest.substr(0, size);
    if (const std::size_t zero = part.find('\0'); zero != std::string_view::npos) {
        throw bad_input("{} holds a byte 0 at offset {}: it is no text in UTF-8", path_.string(), at_ + zero);
    }
    if (const auto invalid = first_invalid_utf8(part)) {
        if (size == rest.size() && is_cut_character(part.substr(*invalid))) {
            throw bad_input("the text {} is cut off inside a character, at offset {}: take it anew",
                            path_.string(), at_ + *invalid);
        }
        throw bad_input(
            "the text {} is not UTF-8: byte 0x{:02X} at offset {}; convert it first, as with iconv -f "
            "ISO-8859-1 "
            "-t UTF-8",
            path_.string(), static_cast<unsigned char>(part[*invalid]), at_ + *invalid);
    }
    at_ += size;
    return part;
}

}  // namespace joulemark::train
