// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace joulemark::sim {

/// What there is to know about one kind of accelerator. Limits and clocks are those of the data sheets and of
/// nvidia-smi; refresh and averaging are those of Yang et al. (SC24) and, for Hopper, of measurements on one
/// H200.
struct Profile {
    std::string_view key;   ///< as given to `joulemark-sim create --accelerator`
    std::string_view name;  ///< as NVML tells it; always says "Simulated"
    unsigned architecture;  ///< nvml::api::architecture_*
    std::uint64_t memory_bytes;

    double idle_power_w;
    double full_power_w;              ///< under full load without limits
    double limit_min_w, limit_max_w;  ///< of the power limit; the default is the maximum

    double clock_min_mhz, clock_max_mhz, clock_step_mhz;  ///< of the SM
    unsigned memory_clock_mhz;

    std::int64_t refresh_ns;         ///< power and energy counter get a new value this often
    std::int64_t instant_window_ns;  ///< a new power is the mean over this long
    std::int64_t lag_ns;             ///< and ends this long before the refresh
    bool averages_power;             ///< nvmlDeviceGetPowerUsage is a 1 s mean, field POWER_AVERAGE exists
    bool has_gpm;

    double ambient_c, kelvin_per_w, thermal_time_s;  ///< first-order thermal model

    double epoch_time_s;  ///< ResNet-50 on ImageNet, one GPU, no limits: default of the ground truth

    /// Supported SM clocks in MHz, descending.
    std::vector<unsigned> sm_clocks() const;
};

std::span<const Profile> profiles();
/// By key, in any case; null when there is none.
const Profile* find_profile(std::string_view key);

}  // namespace joulemark::sim
