// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace joulemark::sensors {

/// The node's present power from the answer to DCMI's "Get Power Reading" (DCMI 1.5, section 6.6.1), its
/// completion code first. Nothing when the controller refuses, is not measuring, or says 0 W.
std::optional<double> dcmi_power_w(std::span<const std::uint8_t> answer);

}  // namespace joulemark::sensors
