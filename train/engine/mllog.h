// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace joulemark::train {

/// MLPerf's log lines on stdout: `:::MLLOG {json}`, for tools that read those. Rank 0 of a job has an active
/// one. All throw environment_error when stdout does not take them.
class MlLog {
  public:
    explicit MlLog(bool active) : active_(active) {}

    void begin(std::string_view key, const nlohmann::json& metadata = nlohmann::json::object()) const;
    void end(std::string_view key, const nlohmann::json& metadata = nlohmann::json::object()) const;
    void event(std::string_view key, const nlohmann::json& value,
               const nlohmann::json& metadata = nlohmann::json::object()) const;

  private:
    void write(std::string_view type, std::string_view key, const nlohmann::json& value,
               const nlohmann::json& metadata) const;
    bool active_;
};

}  // namespace joulemark::train
