// SPDX-License-Identifier: Apache-2.0
#include "sim/profile.h"

#include <algorithm>
#include <string>

#include <strings.h>

namespace joulemark::sim {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t mib = 1 << 20;

constexpr Profile table[] = {
    {.key = "V100",
     .name = "Simulated NVIDIA V100",
     .architecture = 5,
     .memory_bytes = 32768 * mib,
     .idle_power_w = 25,
     .full_power_w = 240,
     .limit_min_w = 100,
     .limit_max_w = 250,
     .clock_min_mhz = 135,
     .clock_max_mhz = 1380,
     .clock_step_mhz = 7.5,
     .memory_clock_mhz = 877,
     .refresh_ns = 20 * ms,
     .instant_window_ns = 10 * ms,
     .lag_ns = 0,
     .averages_power = false,
     .has_gpm = false,
     .ambient_c = 28,
     .kelvin_per_w = 0.16,
     .thermal_time_s = 40,
     .epoch_time_s = 3600},
    {.key = "A100",
     .name = "Simulated NVIDIA A100",
     .architecture = 7,
     .memory_bytes = 40960 * mib,
     .idle_power_w = 52,
     .full_power_w = 390,
     .limit_min_w = 100,
     .limit_max_w = 400,
     .clock_min_mhz = 210,
     .clock_max_mhz = 1410,
     .clock_step_mhz = 15,
     .memory_clock_mhz = 1215,
     .refresh_ns = 20 * ms,
     .instant_window_ns = 20 * ms,
     .lag_ns = 0,
     .averages_power = false,
     .has_gpm = false,
     .ambient_c = 28,
     .kelvin_per_w = 0.09,
     .thermal_time_s = 40,
     .epoch_time_s = 530},
    {.key = "H100",
     .name = "Simulated NVIDIA H100",
     .architecture = 9,
     .memory_bytes = 81559 * mib,
     .idle_power_w = 70,
     .full_power_w = 660,
     .limit_min_w = 200,
     .limit_max_w = 700,
     .clock_min_mhz = 345,
     .clock_max_mhz = 1980,
     .clock_step_mhz = 15,
     .memory_clock_mhz = 2619,
     .refresh_ns = 100 * ms,
     .instant_window_ns = 25 * ms,
     .lag_ns = 50 * ms,
     .averages_power = true,
     .has_gpm = true,
     .ambient_c = 28,
     .kelvin_per_w = 0.055,
     .thermal_time_s = 35,
     .epoch_time_s = 310},
    {.key = "H200",
     .name = "Simulated NVIDIA H200",
     .architecture = 9,
     .memory_bytes = 143771 * mib,
     .idle_power_w = 75,
     .full_power_w = 670,
     .limit_min_w = 200,
     .limit_max_w = 700,
     .clock_min_mhz = 345,
     .clock_max_mhz = 1980,
     .clock_step_mhz = 15,
     .memory_clock_mhz = 3201,
     .refresh_ns = 100 * ms,
     .instant_window_ns = 25 * ms,
     .lag_ns = 50 * ms,
     .averages_power = true,
     .has_gpm = true,
     .ambient_c = 28,
     .kelvin_per_w = 0.055,
     .thermal_time_s = 35,
     .epoch_time_s = 280},
};

}  // namespace

std::vector<unsigned> Profile::sm_clocks() const {
    std::vector<unsigned> clocks;
    for (int i = 0; clock_min_mhz + i * clock_step_mhz <= clock_max_mhz; ++i) {
        clocks.push_back(static_cast<unsigned>(clock_min_mhz + i * clock_step_mhz));
    }
    std::ranges::reverse(clocks);
    return clocks;
}

std::span<const Profile> profiles() {
    return table;
}

const Profile* find_profile(std::string_view key) {
    const auto* found = std::ranges::find_if(table, [&](const Profile& profile) {
        return strcasecmp(std::string(profile.key).c_str(), std::string(key).c_str()) == 0;
    });
    return found == std::end(table) ? nullptr : found;
}

}  // namespace joulemark::sim
