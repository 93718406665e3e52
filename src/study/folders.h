// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "core/files.h"

namespace joulemark::study {

/// Holds DIR/study.lock: one sweep per directory. The kernel frees it when the process ends, however it ends.
/// Throws environment_error when another sweep holds it. On a file system without locks nothing is held, and
/// `problem` says so.
files::Descriptor lock_directory(const std::filesystem::path& directory, std::string& problem);

/// A folder in node-local memory, for the state of simulated GPUs; removed with everything in it. Those of
/// processes that were killed are removed by the next one: whoever is alive holds a lock on its own.
class TemporaryFolder {
  public:
    explicit TemporaryFolder(const std::filesystem::path& parent = default_parent());
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

    /// /dev/shm, else where temporary files go.
    static std::filesystem::path default_parent();

  private:
    std::filesystem::path path_;
    files::Descriptor lock_;
};

}  // namespace joulemark::study
