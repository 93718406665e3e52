// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "vendor/nvml.h"

namespace joulemark::controls {

/// One GPU setting that a study varies. Its name is the run's factor: `power_cap_w`, `sm_clock_mhz`.
enum class Kind { power_cap, sm_clock };

std::string_view name(Kind kind);
std::optional<Kind> kind_named(std::string_view name);

/// The value in force now, in the unit of the control's name. NVML cannot tell whether a clock is locked, so
/// `sm_clock` has no readable value: absent.
std::optional<double> current(const nvml::Device& gpu, Kind kind);

/// The value closest to `wanted` that this GPU can hold (power: in range, to the milliwatt; clock: a supported step), or why
/// there is none.
Result<double> closest(const nvml::Device& gpu, Kind kind, double wanted);

/// Sets it. The failure says what is missing: a permission, a feature.
std::optional<Failure> set(const nvml::Device& gpu, Kind kind, double value);

/// Puts `previous` back; for a clock, absent means unlocked.
std::optional<Failure> put_back(const nvml::Device& gpu, Kind kind, std::optional<double> previous);

}  // namespace joulemark::controls
