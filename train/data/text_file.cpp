// SPDX-License-Identifier: Apache-2.0
#include "data/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
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
    const files::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
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

TextFile::TextFile(const std::filesystem::path& path) : path_(path), file_(path) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (file_.bytes().starts_with(byte_order_mark)) {
        at_ = byte_order_mark.size();
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
    if (const auto invalid = first_invalid_utf8(part)) {
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
