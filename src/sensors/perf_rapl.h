// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sensors/backend.h"

namespace joulemark::sensors {

/// Opens a perf event on one processor for all processes: a file descriptor whose reads give 64-bit counts,
/// or -1 and errno.
using PerfOpener = int (*)(std::uint32_t type, std::uint64_t config, int cpu);
int open_perf_event(std::uint32_t type, std::uint64_t config, int cpu);

/// RAPL domains that powercap did not give, as `open` finds them: tests hand in their own.
void add_perf_rapl(Discovery& discovery, PerfOpener open);

}  // namespace joulemark::sensors
