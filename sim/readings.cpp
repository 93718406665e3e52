// SPDX-License-Identifier: Apache-2.0
#include "sim/readings.h"

#include <algorithm>
#include <cmath>

#include "core/units.h"
#include "sim/truth.h"

namespace joulemark::sim {
namespace {

constexpr std::uint64_t reserved_memory = std::uint64_t{450} << 20;  // what the driver keeps for itself

}  // namespace

const Fault* Readings::fault(FaultKind kind, unsigned gpu, std::int64_t now,
                             std::string_view function) const {
    const auto found = std::ranges::find_if(faults_, [&](const Fault& fault) {
        return fault.kind == kind && (fault.gpu < 0 || fault.gpu == static_cast<std::int32_t>(gpu)) &&
               now >= state_.start_ns() + fault.after_ns && function == fault.function;
    });
    return found == faults_.end() ? nullptr : &*found;
}

std::int64_t Readings::refreshed_ns(unsigned gpu, std::int64_t now) const {
    const std::int64_t period = state_.sensors().refresh_ns;
    const auto offset =
        static_cast<std::int64_t>(mix(state_.seed(), gpu) % static_cast<std::uint64_t>(period));
    return now - (now - offset) % period;
}

double Readings::mean_power_w(unsigned gpu, std::int64_t now, const SensorTiming::View& view) const {
    if (const Fault* frozen = fault(FaultKind::power_frozen, gpu, now)) {
        now = state_.start_ns() + frozen->after_ns;
    }
    const std::int64_t end = refreshed_ns(gpu, now) - view.lag_ns;
    return (state_.energy_j(gpu, end) - state_.energy_j(gpu, end - view.window_ns)) / seconds(view.window_ns);
}

double Readings::power_instant_w(unsigned gpu, std::int64_t now) const {
    return mean_power_w(gpu, now, state_.sensors().instant);
}

double Readings::power_average_w(unsigned gpu, std::int64_t now) const {
    return mean_power_w(gpu, now, state_.sensors().average);
}

double Readings::energy_j(unsigned gpu, std::int64_t now) const {
    const auto at = [&](std::int64_t time) {
        const auto& [lag_ns, window_ns] = state_.sensors().counter;
        return state_.mean_energy_j(gpu, refreshed_ns(gpu, time) - lag_ns, window_ns);
    };
    const auto since = [&](const Fault& fault) { return state_.start_ns() + fault.after_ns; };
    const Fault* frozen = fault(FaultKind::counter_freeze, gpu, now);
    double energy = at(frozen != nullptr ? since(*frozen) : now);
    if (const Fault* reset = fault(FaultKind::counter_reset, gpu, now)) {
        energy = std::max(0.0, energy - at(since(*reset)));
    }
    if (const Fault* wrap = fault(FaultKind::counter_wrap, gpu, now)) {
        energy = std::fmod(energy, wrap->value);
    }
    return energy;
}

double Readings::busy_pct(unsigned gpu, std::int64_t now) const {
    const std::int64_t end = refreshed_ns(gpu, now);
    return 100 * (state_.busy_s(gpu, end) - state_.busy_s(gpu, end - ns_per_s));
}

double Readings::sm_clock_mhz(unsigned gpu, std::int64_t now) const {
    const Segment* load = state_.load_at(gpu, now);
    return load == nullptr ? state_.profile().clock_min_mhz
                           : std::min(load->sm_clock_mhz, state_.clock_limit_mhz(gpu));
}

std::uint64_t Readings::memory_used_bytes(unsigned gpu, std::int64_t now) const {
    const Segment* load = state_.load_at(gpu, now);
    return std::min(reserved_memory + (load == nullptr ? 0 : load->memory_bytes),
                    state_.profile().memory_bytes);
}

}  // namespace joulemark::sim
