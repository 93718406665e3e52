// SPDX-License-Identifier: Apache-2.0
#include "meter/calibration_file.h"

#include <cstdlib>

#include "core/files.h"

namespace joulemark::meter {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path calibration_path() {
    if (const std::string chosen = variable("JOULEMARK_CALIBRATION"); !chosen.empty()) {
        return chosen;
    }
    std::filesystem::path state = variable("XDG_STATE_HOME");
    if (state.empty()) {
        const std::string home = variable("HOME");
        state = std::filesystem::path(home.empty() ? "/root" : home) / ".local" / "state";
    }
    return state / "joulemark" / "calibration.json";
}

nlohmann::json read_calibrations() {
    const auto text = files::read(calibration_path());
    nlohmann::json all = nlohmann::json::parse(text.value_or("{}"), nullptr, false);
    return all.is_object() ? all : nlohmann::json::object();
}

void save_calibration(const std::string& uuid, const nlohmann::json& calibration) {
    const auto path = calibration_path();
    nlohmann::json all = read_calibrations();
    all[uuid] = calibration;
    files::make_directories(path.parent_path());
    files::write_atomically(path, all.dump(1) + '\n');
}

}  // namespace joulemark::meter
