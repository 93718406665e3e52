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

/// A folder in node-local memory, for the state of simulated GPUs; removed with everything in it.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace joulemark::study
