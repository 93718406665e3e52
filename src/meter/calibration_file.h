// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

/// What `joulemark doctor --calibrate` measured of the devices of this user's machines: one JSON object,
/// {"<uuid>": {"<metric>": {refresh_s, lag_s, window_s, ...}}} (docs/schema.md).
namespace joulemark::meter {

/// $JOULEMARK_CALIBRATION, else joulemark/calibration.json below $XDG_STATE_HOME or ~/.local/state.
std::filesystem::path calibration_path();

/// An empty object where there is none, or none that can be read: calibration only sharpens.
nlohmann::json read_calibrations();

/// Replaces that of one device and keeps the others. Throws environment_error naming the path.
void save_calibration(const std::string& uuid, const nlohmann::json& calibration);

}  // namespace joulemark::meter
