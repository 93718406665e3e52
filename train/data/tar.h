// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::train {

/// The regular files of a tar archive (POSIX ustar and pax, GNU long names), one after the other; only
/// headers are read.
class TarReader {
  public:
    struct Entry {
        std::string name;
        std::uint64_t offset = 0;  ///< of its content in the archive
        std::uint64_t bytes = 0;
    };

    /// A file that cannot be opened is reported by the first `next`.
    explicit TarReader(const std::filesystem::path& path);

    /// The next file that is there whole, or nothing at the archive's end. A failure says how it ends early
    /// or is damaged; nothing follows it.
    Result<std::optional<Entry>> next();
    /// A file's content.
    Result<std::string> content(const Entry& entry) const;

  private:
    bool read_at(std::uint64_t offset, void* target, std::size_t bytes) const;
    Failure failure(const std::string& what) const;

    std::string path_;
    files::Descriptor file_;
    std::uint64_t size_ = 0;
    std::uint64_t at_ = 0;
};

}  // namespace joulemark::train
