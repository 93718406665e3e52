// SPDX-License-Identifier: Apache-2.0
#include "engine/hyper_parameters.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/error.h"

namespace joulemark::train {
namespace {

std::int64_t parse_integer(const std::string& name, const std::string& text, std::int64_t minimum,
                           std::int64_t maximum) {
    const auto value = csv::integer(text);
    if (!value || *value < minimum || *value > maximum) {
        throw bad_input("--set {}={}: '{}' is not a whole number of at least {} and at most {}", name, text,
                        text, minimum, maximum);
    }
    return *value;
}

}  // namespace

HyperParameters::HyperParameters(const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw bad_input("--set takes NAME=VALUE, not '{}'", setting);
        }
        if (!given_.emplace(setting.substr(0, equals), setting.substr(equals + 1)).second) {
            throw bad_input("--set gives '{}' twice", setting.substr(0, equals));
        }
    }
}

const std::string* HyperParameters::find(const std::string& name) {
    known_.push_back(name);
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
}

template <typename Value>
Value HyperParameters::answer(const std::string& name, Value value) {
    if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
        values_[name] = fmt::format("{}", fmt::join(value, ","));
    } else {
        values_[name] = fmt::format("{}", value);
    }
    return value;
}

std::int64_t HyperParameters::integer(const std::string& name, std::int64_t fallback, std::int64_t minimum,
                                      std::int64_t maximum) {
    const std::string* text = find(name);
    return answer(name, text == nullptr ? fallback : parse_integer(name, *text, minimum, maximum));
}

std::vector<std::int64_t> HyperParameters::integers(const std::string& name,
                                                    std::vector<std::int64_t> fallback, std::int64_t minimum,
                                                    std::int64_t maximum) {
    if (const std::string* text = find(name)) {
        std::vector<std::string> fields;
        csv::split(*text, fields);
        if (fields.size() != fallback.size()) {
            throw bad_input("--set {}={}: it takes {} numbers with commas between", name, *text,
                            fallback.size());
        }
        std::ranges::transform(fields, fallback.begin(), [&](const std::string& field) {
            return parse_integer(name, field, minimum, maximum);
        });
    }
    return answer(name, std::move(fallback));
}

double HyperParameters::real(const std::string& name, double fallback, double minimum, double maximum) {
    const std::string* text = find(name);
    if (text == nullptr) {
        return answer(name, fallback);
    }
    const auto value = csv::number(*text);
    if (!value || !(*value >= minimum && *value <= maximum)) {  // NaN is neither
        throw bad_input("--set {}={}: '{}' is not a number from {} to {}", name, *text, *text, minimum,
                        maximum);
    }
    return answer(name, *value);
}

std::string HyperParameters::text(const std::string& name, const std::string& fallback,
                                  const std::vector<std::string>& allowed) {
    const std::string* text = find(name);
    if (text != nullptr && !allowed.empty() && std::ranges::find(allowed, *text) == allowed.end()) {
        throw bad_input("--set {}={}: it takes {}", name, *text, fmt::join(allowed, ", "));
    }
    return answer(name, text == nullptr ? fallback : *text);
}

bool HyperParameters::flag(const std::string& name, bool fallback) {
    const std::string* text = find(name);
    if (text != nullptr && *text != "true" && *text != "false") {
        throw bad_input("--set {}={}: it takes true or false", name, *text);
    }
    return answer(name, text == nullptr ? fallback : *text == "true");
}

void HyperParameters::finish(std::string_view model) const {
    for (const auto& [name, value] : given_) {
        if (std::ranges::find(known_, name) == known_.end()) {
            throw bad_input("{} has no setting '{}': it has {}", model, name, fmt::join(known_, ", "));
        }
    }
}

}  // namespace joulemark::train
