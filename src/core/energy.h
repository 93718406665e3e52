// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace joulemark {

/// Rules by which the end-of-run summary and the merged results judge the same samples alike.

/// Two samples further apart than this enclose a gap: three periods, and never less than 3 s, because a
/// busy node delays its sampler for a second or two without losing sight of the power.
std::int64_t max_gap_ns(double period_s);

/// Whether a total adds this component's energy, so that each joule counts once: a node's wall meter contains
/// all others, and is the total where it is alone; a GPU module's counter (Grace-Hopper) contains CPU and
/// memory.
constexpr bool counts_in_total(std::string_view component, bool module_scope, bool alone) {
    return component == "node" ? alone : component == "gpu" || !module_scope;
}

/// What is known of one device and window, to judge its energy counter by.
struct CounterEvidence {
    double duration_s = 0;                         ///< of the window
    double counter_j = 0, counter_covered_s = 0;   ///< the counter's rise, between its first and last sample
    double still_s = 0;                            ///< of this it stood still while power was drawn
    double integral_j = 0, power_covered_s = 0;    ///< of the power; 0 where there is none
    double peak_w = 0;                             ///< the highest power that was seen or is allowed
    double bound_j = 0;                            ///< what the counter's refreshes leave open at the edges
};

/// Whether the counter moved all through the window, so far as that was sampled.
bool counter_spans(const CounterEvidence& evidence);
/// Whether a device can have drawn that much: up to one and a half times the highest power all the time.
bool counter_possible(const CounterEvidence& evidence);
/// Whether it spans the window, moved, is possible, and not less than a third of the integral.
bool counter_plausible(const CounterEvidence& evidence);

}  // namespace joulemark
