// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/files.h"

namespace joulemark::meter {

/// A file of lines that only grows. Whole lines are handed to the kernel (write), so that what is flushed
/// survives this process. When the file cannot be written (disk full, quota, file size limit) lines are kept
/// and tried again up to a bound; beyond it they are dropped and counted. A line the kernel took only half of
/// is completed before anything follows, so the file is always whole lines and at most one torn end.
class AppendFile {
  public:
    /// Creates the file, which must not exist. Throws environment_error.
    explicit AppendFile(std::filesystem::path path);

    /// `lines` ends with '\n' and holds `rows` lines. Writes by itself when much has come together.
    void append(std::string_view lines, std::uint64_t rows = 1);
    void flush();

    /// Rows that are not on disk: dropped, or still waiting.
    std::uint64_t unwritten() const;
    /// errno of the last failed write; 0 when the last one succeeded.
    int error() const { return error_; }
    const std::filesystem::path& path() const { return path_; }

  private:
    static constexpr std::size_t write_at = 32 << 10;
    static constexpr std::size_t keep_at_most = 1 << 20;
    std::filesystem::path path_;
    files::Descriptor file_;
    std::string buffer_;
    std::uint64_t dropped_ = 0;
    int error_ = 0;
};

}  // namespace joulemark::meter
