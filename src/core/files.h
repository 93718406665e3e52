// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace joulemark::files {

/// The whole file, or nothing when it cannot be read (errno is left for the caller).
std::optional<std::string> read(const std::filesystem::path& path);
/// The first line without its end, white space trimmed: what most files of /sys hold.
std::optional<std::string> read_line(const std::filesystem::path& path);

/// Writes to a temporary name beside `path` and renames, so that readers see the old or the new file.
/// Throws environment_error (directory not writable, disk full) naming the path.
void write_atomically(const std::filesystem::path& path, std::string_view content);
/// The same for a content in parts, one after the other: large ones need not be joined first.
void write_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// mkdir -p. Throws environment_error naming the path and the cause.
void make_directories(const std::filesystem::path& path);

/// Size of a file, or of all files in a folder and below; 0 of what is not there.
std::uintmax_t total_bytes(const std::filesystem::path& path);

/// What is wrong with which path, as one sentence.
std::string sentence(const std::filesystem::filesystem_error& error);

/// Owns a file descriptor.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = other.release();
        }
        return *this;
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() {
        const int fd = fd_;
        fd_ = -1;
        return fd;
    }
    void reset();

  private:
    int fd_ = -1;
};

}  // namespace joulemark::files
