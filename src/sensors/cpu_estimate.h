// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace joulemark::sensors {

/// Rated power (TDP) of one processor of this model, from its maker's data sheet; nothing for a model not
/// listed.
std::optional<double> rated_power_w(std::string_view cpu_model);

/// Power of a server processor relative to its rated power, at a utilisation of 0 to 100 per cent: 0.12 idle,
/// 0.32 at 10, 0.75 at 50, 1.02 at 100, linear between. Means over Intel Xeon servers, B. Davy, "Building an
/// AWS EC2 Carbon Emissions Dataset", Teads Engineering 2021.
double relative_power(double busy_pct);

}  // namespace joulemark::sensors
