// SPDX-License-Identifier: Apache-2.0
#include "engine/mllog.h"

#include <fmt/format.h>

#include "core/clock.h"
#include "engine/streams.h"

namespace joulemark::train {

void MlLog::begin(std::string_view key, const nlohmann::json& metadata) const {
    write("INTERVAL_START", key, nullptr, metadata);
}

void MlLog::end(std::string_view key, const nlohmann::json& metadata) const {
    write("INTERVAL_END", key, nullptr, metadata);
}

void MlLog::event(std::string_view key, const nlohmann::json& value, const nlohmann::json& metadata) const {
    write("POINT_IN_TIME", key, value, metadata);
}

void MlLog::write(std::string_view type, std::string_view key, const nlohmann::json& value,
                  const nlohmann::json& metadata) const {
    if (!active_) {
        return;
    }
    const nlohmann::ordered_json line = {
        {"namespace", ""},    {"time_ms", MonotonicClock().realtime_ns() / 1'000'000},
        {"event_type", type}, {"key", key},
        {"value", value},     {"metadata", metadata}};
    print(fmt::format(":::MLLOG {}\n", line.dump()));
    flush_output();
}

}  // namespace joulemark::train
