// SPDX-License-Identifier: Apache-2.0
#include "core/energy.h"

#include <algorithm>

#include "core/units.h"

namespace joulemark {

std::int64_t max_gap_ns(double period_s) {
    constexpr double least_s = 3;
    return nanoseconds(std::max(3 * period_s, least_s));
}

bool counter_spans(const CounterEvidence& evidence) {
    return evidence.counter_covered_s - evidence.still_s >=
           0.95 * std::min(evidence.duration_s, std::max(evidence.power_covered_s, 1e-9));
}

bool counter_possible(const CounterEvidence& evidence) {
    return evidence.counter_j <= 1.5 * evidence.peak_w * evidence.duration_s + evidence.bound_j;
}

bool counter_plausible(const CounterEvidence& evidence) {
    return counter_spans(evidence) && evidence.counter_j > 0 && counter_possible(evidence) &&
           evidence.counter_j >= evidence.integral_j / 3 - evidence.bound_j;
}

}  // namespace joulemark
