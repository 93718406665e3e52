// SPDX-License-Identifier: Apache-2.0
#include "core/standstill.h"

namespace joulemark {

void Standstill::add(std::int64_t time_ns, double value) {
    if (current_.samples == 0 || value != current_.value) {
        sum_s_ += current_.duration_s();
        count_ += current_.samples > 0 ? 1 : 0;
        current_ = {.start_ns = time_ns, .end_ns = time_ns, .samples = 0, .value = value};
    }
    current_.end_ns = time_ns;
    ++current_.samples;
    if (current_.samples > longest_.samples) {
        longest_ = current_;
    }
}

bool Standstill::stuck() const {
    constexpr std::int64_t least_moves = 10;
    constexpr double ratio = 30;
    // The current stretch is not in the sum yet; without others there is no movement to compare with.
    const bool ended = longest_.start_ns != current_.start_ns;
    const double others_s = sum_s_ + (ended ? current_.duration_s() - longest_.duration_s() : 0);
    return long_enough() && count_ >= least_moves &&
           longest_.duration_s() >= ratio * others_s / static_cast<double>(count_);
}

}  // namespace joulemark
