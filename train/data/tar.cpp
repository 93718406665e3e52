// SPDX-License-Identifier: Apache-2.0
#include "data/tar.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace joulemark::train {
namespace {

constexpr std::uint64_t block = 512;
constexpr std::uint64_t longest_extension = 1 << 20;    // names and pax records
constexpr std::uint64_t in_header = ~std::uint64_t{0};  // a pax size that is not given

/// POSIX.1-1988 ustar.
struct Header {
    std::array<char, 100> name;
    std::array<char, 24> mode_and_owner;
    std::array<char, 12> size;
    std::array<char, 12> time;
    std::array<char, 8> checksum;
    char type;
    std::array<char, 100> link;
    std::array<char, 6> magic;
    std::array<char, 82> version_and_owners;
    std::array<char, 155> prefix;
    std::array<char, 12> padding;
};
static_assert(sizeof(Header) == block);

std::string_view text_of(std::span<const char> field) {
    return {field.data(), static_cast<std::size_t>(std::ranges::find(field, '\0') - field.begin())};
}

/// Octal digits, or GNU's base 256 for large files.
std::optional<std::uint64_t> number_of(std::span<const char> field) {
    if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
        std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7F;
        for (const char byte : field.subspan(1)) {
            if (value >> 56 != 0) {
                return std::nullopt;
            }
            value = value << 8 | static_cast<unsigned char>(byte);
        }
        return value;
    }
    std::string_view text = text_of(field);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
    const bool digits =
        error == std::errc() && std::all_of(end, text.data() + text.size(), [](char c) { return c == ' '; });
    return digits ? std::optional(value) : std::nullopt;
}

bool checksum_is_right(const Header& header) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < block; ++i) {
        sum += bytes[i];
    }
    for (const char byte : header.checksum) {
        sum += ' ' - std::uint64_t{static_cast<unsigned char>(byte)};
    }
    return number_of(header.checksum) == sum;
}

/// The value of `key` in pax records "<length> <key>=<value>\n".
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
    std::optional<std::string> value;
    while (!records.empty()) {
        std::size_t length = 0;
        const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
        const auto digits = static_cast<std::size_t>(end - records.data());
        if (error != std::errc() || length <= digits + 1 || length > records.size()) {
            break;
        }
        const std::string_view record = records.substr(digits + 1, length - digits - 2);
        if (record.starts_with(key) && record.substr(key.size()).starts_with('=')) {
            value = record.substr(key.size() + 1);
        }
        records.remove_prefix(length);
    }
    return value;
}

std::string full_name(const Header& header) {
    const std::string name(text_of(header.name));
    const bool ustar =
        text_of(header.magic) == "ustar";  // GNU's magic goes on with spaces, and has no prefix
    return ustar && header.prefix[0] != '\0' ? std::string(text_of(header.prefix)) + "/" + name : name;
}

}  // namespace

TarReader::TarReader(const std::filesystem::path& path)
    : path_(path.string()), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (file_ && fstat(file_.get(), &status) == 0) {
        size_ = static_cast<std::uint64_t>(status.st_size);
    }
}

bool TarReader::read_at(std::uint64_t offset, void* target, std::size_t bytes) const {
    auto* at = static_cast<char*>(target);
    while (bytes > 0) {
        const ssize_t got = pread(file_.get(), at, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

Failure TarReader::failure(const std::string& what) const {
    return {path_ + " " + what, "copy the archive anew"};
}

Result<std::string> TarReader::content(const Entry& entry) const {
    std::string content(entry.bytes, '\0');
    if (!read_at(entry.offset, content.data(), content.size())) {
        return failure("cannot be read at " + entry.name);
    }
    return content;
}

Result<std::optional<TarReader::Entry>> TarReader::next() {
    if (!file_) {
        return Failure{"cannot open " + path_, "check that it is there and readable"};
    }
    Entry entry;
    std::uint64_t pax_size = in_header;
    while (true) {
        if (at_ >= size_) {  // without the two empty blocks: some writers leave them out
            return std::optional<Entry>();
        }
        Header header;
        if (size_ - at_ < block || !read_at(at_, &header, block)) {
            return failure("ends in the middle of a header");
        }
        if (std::ranges::all_of(std::span(reinterpret_cast<const char*>(&header), block),
                                [](char byte) { return byte == 0; })) {
            return std::optional<Entry>();
        }
        const auto size = number_of(header.size);
        if (!size || !checksum_is_right(header)) {
            return failure(at_ == 0 ? "is not a tar archive" : fmt::format("is damaged at byte {}", at_));
        }
        const bool extension =
            header.type == 'L' || header.type == 'x' || header.type == 'g' || header.type == 'K';
        entry.bytes = extension || pax_size == in_header ? *size : pax_size;
        entry.offset = at_ + block;
        if (entry.name.empty() || extension) {
            entry.name = extension ? entry.name : full_name(header);
        }
        if (entry.bytes > size_ - entry.offset) {
            return failure("ends in the middle of " + (entry.name.empty() ? "a name" : entry.name));
        }
        at_ = entry.offset + (entry.bytes + block - 1) / block * block;
        if (header.type == 'L' || header.type == 'x') {
            const auto text =
                entry.bytes <= longest_extension ? content(entry) : failure("has a name of absurd length");
            if (!text) {
                return text.failure();
            }
            if (header.type == 'L') {
                entry.name = text_of(*text);
            } else {
                entry.name = pax_value(*text, "path").value_or(entry.name);
                if (const auto digits = pax_value(*text, "size")) {
                    std::from_chars(digits->data(), digits->data() + digits->size(), pax_size);
                }
            }
        } else if (!extension) {
            if (header.type == '0' || header.type == '\0') {
                return std::optional(entry);
            }
            entry = {};  // a folder or a link
            pax_size = in_header;
        }
    }
}

}  // namespace joulemark::train
