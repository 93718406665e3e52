// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sensors/catalog.h"

namespace joulemark::sensors {

/// How a sensor behaves when read again and again.
struct ProbeResult {
    double read_latency_s = 0;  ///< median, on the real clock
    std::vector<std::optional<double>>
        update_period_s;  ///< per metric; nothing when it did not change often enough
};

/// Times the reads of every source of `machine`, one source at a time, then polls all of them at once, each
/// in a thread of its own, for about `duration_s` of the machine's clock. In the order of Machine::sources.
std::vector<ProbeResult> probe(const Machine& machine, double duration_s = 1.5);

/// Probes and writes the results into the reports of the sources in use.
void probe_reports(Machine& machine);

}  // namespace joulemark::sensors
