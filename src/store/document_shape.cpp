// SPDX-License-Identifier: Apache-2.0
#include "store/document_shape.h"

#include <cstddef>

#include <fmt/format.h>

namespace joulemark::store {
namespace {

using nlohmann::json;

// A member's value stands for its kind: "" text, 0 whole number, 0.5 number, false, null any of these. One
// element of an array stands for all, and "*" for all members of an object.

/// The value is of the shape's kind, whatever it contains.
bool is_of_kind(const json& value, const json& shape) {
    if (shape.is_null()) {
        return value.is_primitive();
    }
    if (shape.is_number_float()) {
        return value.is_number();
    }
    return shape.is_number() ? value.is_number_integer() : value.type() == shape.type();
}

void keep(json& value, const json& shape, const std::string& path, std::vector<std::string>& damaged) {
    if (value.is_array()) {
        std::size_t number = 0;
        for (auto element = value.begin(); element != value.end();) {
            const std::string place = fmt::format("{}[{}]", path, number++);
            if (is_of_kind(*element, shape.front())) {
                keep(*element, shape.front(), place, damaged);
                ++element;
            } else {
                damaged.push_back(place);
                element = value.erase(element);
            }
        }
    } else if (value.is_object()) {
        const auto all = shape.find("*");
        for (auto member = value.begin(); member != value.end();) {
            const auto expected = all != shape.end() ? all : shape.find(member.key());
            if (expected == shape.end() || (member->is_null() && !expected->is_structured())) {
                ++member;
                continue;
            }
            const std::string place = path.empty() ? member.key() : path + '.' + member.key();
            if (is_of_kind(*member, *expected)) {
                keep(*member, *expected, place, damaged);
                ++member;
                continue;
            }
            if (!member->is_null()) {
                damaged.push_back(place);
            }
            member = value.erase(member);
        }
    }
}

}  // namespace

const json& run_shape() {
    static const json shape = json::parse(R"({
        "schema": 0.5, "run": "", "name": "", "host": "", "boot_id": "", "expected_hosts": [""], "command": [""],
        "tags": {"*": null}, "factors": {"*": null}, "study": {"name": "", "repeat": 0, "position": 0},
        "start_ns": 0, "anchor": {"monotonic_ns": 0, "realtime_ns": 0}, "clock": "", "simulated": false,
        "rate_hz": 0.5, "energy_rate_hz": 0.5, "software": {"*": null},
        "hardware": {"cpu_model": "", "cpus": 0, "memory_bytes": 0.5},
        "devices": [{"device": "", "file": "", "name": "", "component": "", "index": 0, "uuid": "",
                     "pci_bus_id": "", "memory_bytes": 0.5, "power_limit_w": 0.5, "simulated": false}],
        "sources": [{"source": "", "device": "", "metrics": [""], "method": "", "scope": "", "origin": "",
                     "period_s": 0.5, "native_period_s": 0.5, "accuracy_pct": 0.5, "accuracy_note": "",
                     "calibration": {"*": {"refresh_s": 0.5, "lag_s": 0.5, "window_s": 0.5}}}],
        "unavailable": [{"name": "", "quantity": "", "scope": "", "reason": "", "remedy": ""}],
        "controls": {"*": {"*": {"requested": 0.5, "enforced": 0.5, "previous": 0.5}}},
        "imported": {"file": "", "line": 0, "metrics": {"*": 0.5}, "n": 0, "sd": {"*": 0.5}, "components": [""]},
        "warnings": [""]})");
    return shape;
}

const json& end_shape() {
    static const json shape = json::parse(R"({
        "end_ns": 0, "exit_status": 0, "signal": null, "failed_ranks": [{"rank": 0, "exit_status": 0}],
        "meter": {"cpu_s": 0.5, "driver_s": 0.5, "max_rss_bytes": 0.5, "rows": 0.5, "lost": 0.5, "late": 0.5,
                  "achieved_hz": {"*": 0.5}, "jitter_s": {"*": 0.5}},
        "counters": [{"source": "", "device": ""}], "warnings": [""]})");
    return shape;
}

std::vector<std::string> keep_to_shape(json& document, const json& shape) {
    std::vector<std::string> damaged;
    keep(document, shape, "", damaged);
    return damaged;
}

}  // namespace joulemark::store
