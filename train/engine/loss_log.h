// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace joulemark::train {

/// The file of --log-losses: a loss a line, exact.
class LossLog {
  public:
    /// Keeps the first `kept` lines of a file that is there, those of the updates before the ones to come.
    /// Throws environment_error when it cannot be written.
    LossLog(const std::string& path, std::int64_t kept);

    void add(double loss);
    /// Throws environment_error when the losses so far have not been taken.
    void flush();

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace joulemark::train
