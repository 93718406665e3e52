// SPDX-License-Identifier: Apache-2.0
#include "controls/control.h"

#include <algorithm>
#include <cmath>

namespace joulemark::controls {
namespace {

std::optional<Failure> outcome(nvml::api::Return status) {
    if (status == nvml::api::success) {
        return std::nullopt;
    }
    return nvml::explain(status);
}

Result<double> closest_power(const nvml::Device& gpu, double watts) {
    const auto range = gpu.power_limit_range_w();
    if (!range) {
        return nvml::explain(range.status);
    }
    const auto [low, high] = range.value;
    if (watts < low || watts > high) {
        return Failure{fmt::format("{} W is outside its range of {} to {} W", watts, low, high), "choose a value inside"};
    }
    return std::round(watts * 1e3) * 1e-3;
}

Result<double> closest_clock(const nvml::Device& gpu, double mhz) {
    const auto steps = gpu.supported_sm_clocks_mhz();
    if (!steps || steps.value.empty()) {
        return nvml::explain(steps ? nvml::api::error_no_data : steps.status);
    }
    const double low = steps.value.back();
    const double high = steps.value.front();
    if (mhz < low || mhz > high) {
        return Failure{fmt::format("{} MHz is outside its range of {} to {} MHz", mhz, low, high), "choose a value inside"};
    }
    return *std::ranges::min_element(steps.value, {}, [&](unsigned step) { return std::abs(step - mhz); });
}

}  // namespace

std::string_view name(Kind kind) { return kind == Kind::power_cap ? "power_cap_w" : "sm_clock_mhz"; }

std::optional<Kind> kind_named(std::string_view text) {
    for (const Kind kind : {Kind::power_cap, Kind::sm_clock}) {
        if (name(kind) == text) {
            return kind;
        }
    }
    return std::nullopt;
}

std::optional<double> current(const nvml::Device& gpu, Kind kind) {
    return kind == Kind::power_cap ? gpu.power_limit_w().optional() : std::nullopt;
}

Result<double> closest(const nvml::Device& gpu, Kind kind, double wanted) {
    return kind == Kind::power_cap ? closest_power(gpu, wanted) : closest_clock(gpu, wanted);
}

std::optional<Failure> set(const nvml::Device& gpu, Kind kind, double value) {
    if (kind == Kind::power_cap) {
        return outcome(gpu.set_power_limit_w(value));
    }
    const auto step = static_cast<unsigned>(std::lround(value));
    return outcome(gpu.lock_sm_clock_mhz(step, step));
}

std::optional<Failure> put_back(const nvml::Device& gpu, Kind kind, std::optional<double> previous) {
    if (previous) {
        return set(gpu, kind, *previous);
    }
    return kind == Kind::sm_clock ? outcome(gpu.unlock_sm_clock())
                                  : Failure{"the previous value is unknown", "set it by hand"};
}

}  // namespace joulemark::controls
