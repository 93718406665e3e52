// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::sensors {

/// The machine's files below a root: "/" or, in tests, a fixture tree. Paths are relative to it
/// ("sys/class/powercap"). Tests override `open` to refuse a file, since file modes do not stop root.
class FileTree {
  public:
    struct Opened {
        files::Descriptor file;
        int error = 0;  ///< errno of a failed open
    };

    explicit FileTree(std::filesystem::path root) : root_(std::move(root)) {}
    virtual ~FileTree() = default;

    virtual Opened open(const std::string& path) const;

    /// The path a user can type.
    std::string shown(const std::string& path) const { return (root_ / path).string(); }
    bool exists(const std::string& path) const;
    /// Names in a directory, sorted (numbers by value); empty when there is none.
    std::vector<std::string> entries(const std::string& path) const;
    /// The whole file, or nothing.
    std::optional<std::string> text(const std::string& path) const;
    /// The first line, white space trimmed, or nothing.
    std::optional<std::string> line(const std::string& path) const;
    std::optional<std::uint64_t> number(const std::string& path) const;

  private:
    std::filesystem::path root_;
};

/// A small file of /sys or /proc kept open, read again and again without allocating.
class OpenFile {
  public:
    explicit OpenFile(files::Descriptor file) : file_(std::move(file)) {}

    /// The start of the file in `buffer`; empty when the read fails.
    std::string_view read(std::span<char> buffer) const noexcept;
    /// The unsigned number the file starts with.
    std::optional<std::uint64_t> number() const noexcept;

  private:
    files::Descriptor file_;
};

/// Opens `path` and reads a number from it once; else why that fails. A refused permission is told apart by
/// its remedy, which the caller words: only it knows the file's kind.
struct Refusal {
    std::string reason;
    bool permission = false;
};
std::variant<OpenFile, Refusal> open_number(const FileTree& files, const std::string& path);

/// The first unsigned number in `text` after `key`, as in "MemTotal:  32 kB" or "usage_usec 12".
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) noexcept;

}  // namespace joulemark::sensors
