// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "sensors/file_tree.h"

namespace joulemark::sensors {

/// Utilisation of all processors between one call and the next, from the first line of /proc/stat.
class ProcStat {
  public:
    static constexpr const char* path = "proc/stat";

    explicit ProcStat(OpenFile file) : file_(std::move(file)) {
        busy_pct();
        busy_pct_.reset();  // a mean since the machine started
    }

    /// Per cent of the processors' time that was neither idle nor waiting for I/O; nothing when the read
    /// fails. Within one clock tick of the kernel the last value holds: nobody can know a newer one.
    std::optional<double> busy_pct() noexcept;

  private:
    OpenFile file_;
    std::uint64_t total_ = 0;
    std::uint64_t idle_ = 0;
    std::optional<double> busy_pct_;
};

}  // namespace joulemark::sensors
