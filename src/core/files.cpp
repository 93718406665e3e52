// SPDX-License-Identifier: Apache-2.0
#include "core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace joulemark::files {

std::optional<std::string> read(const std::filesystem::path& path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        return std::nullopt;
    }
    std::string content;
    char block[16384];
    while (true) {
        const ssize_t got = ::read(file.get(), block, sizeof block);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return std::nullopt;
        }
        if (got == 0) {
            return content;
        }
        content.append(block, static_cast<std::size_t>(got));
    }
}

std::optional<std::string> read_line(const std::filesystem::path& path) {
    auto content = read(path);
    if (!content) {
        return std::nullopt;
    }
    content->erase(std::min(content->find('\n'), content->size()));
    const std::size_t first = content->find_first_not_of(" \t\r");
    if (first == std::string::npos) {
        return "";
    }
    return content->substr(first, content->find_last_not_of(" \t\r") + 1 - first);
}

void write_atomically(const std::filesystem::path& path, std::string_view content) {
    write_atomically(path, std::span(&content, 1));
}

void write_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
    // A device or a pipe is written to, not replaced.
    std::error_code unknown;
    const bool in_place = std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown);
    // What a symbolic link points to is replaced, not the link.
    const bool link = std::filesystem::is_symlink(path, unknown);
    const std::filesystem::path target = link ? std::filesystem::weakly_canonical(path, unknown) : path;
    std::filesystem::path temporary = target;
    if (!in_place) {
        temporary += "." + std::to_string(getpid()) + ".tmp";
    }
    const auto fail = [&](int error) {
        if (!in_place) {
            unlink(temporary.c_str());
        }
        return environment_error("cannot write {}: {}", path.string(), std::strerror(error));
    };
    Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) {
        throw fail(errno);
    }
    for (std::string_view part : parts) {
        while (!part.empty()) {
            const ssize_t wrote = write(file.get(), part.data(), part.size());
            if (wrote < 0 && errno == EINTR) {
                continue;
            }
            if (wrote < 0) {
                throw fail(errno);
            }
            part.remove_prefix(static_cast<std::size_t>(wrote));
        }
    }
    if (in_place) {
        return;
    }
    if (fsync(file.get()) != 0 || close(file.release()) != 0 || rename(temporary.c_str(), target.c_str()) != 0) {
        throw fail(errno);
    }
}

void make_directories(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error && !std::filesystem::is_directory(path, error)) {
        error = std::make_error_code(std::errc::not_a_directory);
    }
    if (error) {
        throw environment_error("cannot create the directory {}: {}", path.string(), error.message());
    }
}

std::uintmax_t total_bytes(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const auto size_of = [&](const fs::path& file) {
        const std::uintmax_t size = fs::is_regular_file(file, error) ? fs::file_size(file, error) : 0;
        return error ? 0 : size;
    };
    std::uintmax_t sum = size_of(path);
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
        sum += size_of(entry->path());
    }
    return sum;
}

std::string sentence(const std::filesystem::filesystem_error& error) {
    return fmt::format("cannot use {}: {}", error.path1().string(), error.code().message());
}

void Descriptor::reset() {
    if (fd_ >= 0) {
        close(fd_);
        fd_ = -1;
    }
}

}  // namespace joulemark::files
