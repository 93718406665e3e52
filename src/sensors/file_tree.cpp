// SPDX-License-Identifier: Apache-2.0
#include "sensors/file_tree.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace joulemark::sensors {
namespace {

constexpr std::string_view blanks = " \t\n";

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
    const std::size_t start = text.find_first_not_of(blanks);
    std::uint64_t value = 0;
    if (start == std::string_view::npos ||
        std::from_chars(text.data() + start, text.data() + text.size(), value).ec != std::errc{}) {
        return std::nullopt;
    }
    return value;
}

bool natural_less(const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
}

}  // namespace

FileTree::Opened FileTree::open(const std::string& path) const {
    const int fd = ::open(shown(path).c_str(), O_RDONLY | O_CLOEXEC);
    return {files::Descriptor(fd), fd < 0 ? errno : 0};
}

bool FileTree::exists(const std::string& path) const {
    std::error_code ignored;
    return std::filesystem::exists(root_ / path, ignored);
}

std::vector<std::string> FileTree::entries(const std::string& path) const {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(root_ / path, error), end; !error && it != end;
         it.increment(error)) {
        names.push_back(it->path().filename().string());
    }
    std::ranges::sort(names, natural_less);
    return names;
}

std::optional<std::string> FileTree::text(const std::string& path) const {
    const Opened opened = open(path);
    if (!opened.file) {
        return std::nullopt;
    }
    std::string content;
    char block[4096];
    ssize_t n = 0;
    while ((n = ::read(opened.file.get(), block, sizeof block)) > 0) {
        content.append(block, static_cast<std::size_t>(n));
    }
    return n < 0 ? std::nullopt : std::optional(content);
}

std::optional<std::string> FileTree::line(const std::string& path) const {
    std::optional<std::string> content = text(path);
    if (content) {
        content->erase(std::min(content->find('\n'), content->size()));
        content->erase(content->find_last_not_of(" \t\r") + 1);
        content->erase(0, std::min(content->find_first_not_of(" \t"), content->size()));
    }
    return content;
}

std::optional<std::uint64_t> FileTree::number(const std::string& path) const {
    const auto content = text(path);
    return content ? leading_number(*content) : std::nullopt;
}

std::string_view OpenFile::read(std::span<char> buffer) const noexcept {
    const ssize_t n = ::pread(file_.get(), buffer.data(), buffer.size(), 0);
    return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

std::optional<std::uint64_t> OpenFile::number() const noexcept {
    char buffer[32];
    return leading_number(read(buffer));
}

std::variant<OpenFile, Refusal> open_number(const FileTree& files, const std::string& path) {
    FileTree::Opened opened = files.open(path);
    if (!opened.file) {
        const bool permission = opened.error == EACCES || opened.error == EPERM;
        return Refusal{fmt::format("{} cannot be read: {}", files.shown(path), std::strerror(opened.error)),
                       permission};
    }
    OpenFile file(std::move(opened.file));
    errno = 0;
    if (!file.number()) {
        const int error = errno;
        return Refusal{fmt::format("{} cannot be read: {}", files.shown(path),
                                   error != 0 ? std::strerror(error) : "it holds no number"),
                       error == EACCES || error == EPERM};
    }
    return file;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) noexcept {
    const std::size_t at = text.find(key);
    return at == std::string_view::npos ? std::nullopt : leading_number(text.substr(at + key.size()));
}

}  // namespace joulemark::sensors
