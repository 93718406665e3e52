// SPDX-License-Identifier: Apache-2.0
#include "sim/sensor_timing.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/units.h"

namespace joulemark::sim {
namespace {

constexpr double shortest_s = 1e-6, longest_s = 60;

struct Key {
    const char* name;
    std::int64_t& (*value)(SensorTiming&);
    double minimum_s;
};

// A power is a mean, so it has a window.
constexpr Key keys[] = {
    {"refresh_s", [](SensorTiming& timing) -> std::int64_t& { return timing.refresh_ns; }, shortest_s},
    {"counter_lag_s", [](SensorTiming& timing) -> std::int64_t& { return timing.counter.lag_ns; }, 0},
    {"counter_window_s", [](SensorTiming& timing) -> std::int64_t& { return timing.counter.window_ns; }, 0},
    {"instant_lag_s", [](SensorTiming& timing) -> std::int64_t& { return timing.instant.lag_ns; }, 0},
    {"instant_window_s", [](SensorTiming& timing) -> std::int64_t& { return timing.instant.window_ns; },
     shortest_s},
    {"average_lag_s", [](SensorTiming& timing) -> std::int64_t& { return timing.average.lag_ns; }, 0},
    {"average_window_s", [](SensorTiming& timing) -> std::int64_t& { return timing.average.window_ns; },
     shortest_s},
};

}  // namespace

SensorTiming::SensorTiming(const Profile& profile)
    : refresh_ns(profile.refresh_ns),
      counter{profile.lag_ns, 0},
      instant{profile.lag_ns, profile.instant_window_ns},
      average{profile.lag_ns, ns_per_s} {}

SensorTiming parse_sensor_timing(const std::string& json, const std::string& origin, const Profile& profile) {
    const auto document = nlohmann::json::parse(json, nullptr, false);
    if (!document.is_object()) {
        throw bad_input("{} is not a JSON object of times such as {{\"counter_window_s\": 0.1}}", origin);
    }
    SensorTiming timing(profile);
    for (const auto& [name, value] : document.items()) {
        const Key* key = std::ranges::find(keys, name, &Key::name);
        if (key == std::end(keys)) {
            throw bad_input("{}: unknown key \"{}\"; docs/simulation.md lists the keys of the sensors",
                            origin, name);
        }
        const double time_s = value.is_number() ? value.get<double>() : -1;
        if (!(time_s >= key->minimum_s && time_s <= longest_s)) {
            throw bad_input("{}: \"{}\" has to be seconds from {} to {}, not {}", origin, name,
                            key->minimum_s, longest_s, value.dump());
        }
        key->value(timing) = nanoseconds(time_s);
    }
    return timing;
}

}  // namespace joulemark::sim
