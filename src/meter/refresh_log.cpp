// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/units.h"
#include "meter/attribution.h"

namespace joulemark::meter {
namespace {

/// Readings this far around a span are kept: the idle power on both sides of it is part of the model.
constexpr std::int64_t margin_ns = ns_per_s;

}  // namespace

RefreshLog::RefreshLog(std::vector<Span> spans) {
    for (const Span& span : spans) {
        const Span wide{span.start_ns - margin_ns, span.end_ns + margin_ns};
        if (!spans_.empty() && wide.start_ns <= spans_.back().end_ns) {
            spans_.back().end_ns = std::max(spans_.back().end_ns, wide.end_ns);
        } else {
            spans_.push_back(wide);
        }
    }
}

void RefreshLog::add(std::int64_t time_ns, double energy_j, std::int64_t read_ns) {
    while (span_ < spans_.size() && spans_[span_].end_ns < time_ns) {
        ++span_;
        broken_ = true;
    }
    const bool near = span_ < spans_.size() && time_ns >= spans_[span_].start_ns;
    if (near && started_) {
        ++readings_;
        if (energy_j < last_j_) {
            broken_ = true;  // it was reset
        } else if (energy_j > last_j_) {
            refreshes_.push_back({last_ns_, time_ns + read_ns, energy_j, !broken_});
            broken_ = false;
        }
    }
    started_ = true;
    last_ns_ = time_ns;
    last_j_ = energy_j;
}

}  // namespace joulemark::meter
