// SPDX-License-Identifier: Apache-2.0
#include "sensors/counter.h"

#include <cmath>

#include "core/units.h"

namespace joulemark::sensors {
namespace {

constexpr double two_to_64 = 18446744073709551616.0;

}  // namespace

double Counter::update(std::int64_t time_ns, std::optional<std::uint64_t> raw, double power_w) noexcept {
    if (!raw) {
        ++events_.failed_reads;
        return gap;
    }
    if (!started_) {
        started_ = true;
        raw_ = *raw;
        read_ns_ = changed_ns_ = time_ns;
        return 0;
    }
    if (*raw == raw_ && stands_still(time_ns, power_w)) {
        return gap;
    }
    const double since_read_s = seconds(time_ns - read_ns_);
    const double since_change_s = seconds(time_ns - changed_ns_);
    const bool fell = *raw < raw_;
    const bool outside = model_.modulus != 0 && (raw_ >= model_.modulus || *raw >= model_.modulus);
    const std::uint64_t rise = *raw - raw_ + (fell ? model_.modulus : 0);  // modulo 2^64
    const double range = model_.modulus == 0 ? two_to_64 : static_cast<double>(model_.modulus);
    const double units_per_s = model_.max_power_w * model_.units_per_joule;

    if (*raw != raw_) {
        changed_ns_ = time_ns;
        expected_j_ = 0;
        frozen_ = false;
    }
    raw_ = *raw;
    read_ns_ = time_ns;

    if (since_read_s * units_per_s > range) {
        ++events_.unknowable;
        total_ += outside ? 0 : static_cast<std::int64_t>(rise);
        return gap;
    }
    if (static_cast<double>(rise) > (since_change_s + refresh_s) * units_per_s || (fell && outside)) {
        ++events_.resets;
        total_ = total_ > 0 ? 0 : total_ - 1;
        return joules();
    }
    events_.wraps += fell ? 1 : 0;
    total_ += static_cast<std::int64_t>(rise);
    return joules();
}

// Called for an unchanged value. The stretch since the last reading counts with the power at its end.
bool Counter::stands_still(std::int64_t time_ns, double power_w) {
    const double least_w = std::isnan(power_w) ? model_.min_power_w : power_w;
    expected_j_ += least_w * seconds(time_ns - read_ns_);
    constexpr double units_that_show = 16;
    const bool frozen = seconds(time_ns - changed_ns_) >= frozen_after_s &&
                        expected_j_ * model_.units_per_joule >= units_that_show;
    if (frozen) {
        read_ns_ = time_ns;
        events_.frozen += frozen_ ? 0 : 1;
        frozen_ = true;
    }
    return frozen;
}

}  // namespace joulemark::sensors
