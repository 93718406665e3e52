// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace joulemark {

/// Rules by which the end-of-run summary and the merged results judge the same samples alike.

/// Two samples further apart than this enclose a gap: three periods, and never less than 3 s, because a
/// busy node delays its sampler for a second or two without losing sight of the power.
std::int64_t max_gap_ns(double period_s);

/// What is known of one device and window, to judge its energy counter by.
struct CounterEvidence {
    double duration_s = 0;                         ///< of the window
    double counter_j = 0, counter_covered_s = 0;   ///< the counter's rise, between its first and last sample
    double integral_j = 0, power_covered_s = 0;    ///< of the power; 0 where there is none
    double peak_w = 0;                             ///< the highest power that was seen or is allowed
    double bound_j = 0;                            ///< what the counter's refreshes leave open at the edges
};

/// Whether the counter spans the window.
bool counter_spans(const CounterEvidence& evidence);
/// Whether it spans the window, moved, and can be true beside the power: between a third of the integral and
/// one and a half times the highest power all the time.
bool counter_plausible(const CounterEvidence& evidence);

}  // namespace joulemark
