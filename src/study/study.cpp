// SPDX-License-Identifier: Apache-2.0
#include "study/study.h"

#include <algorithm>
#include <cmath>

#include "core/csv.h"

namespace joulemark::study {

Level::Level(std::string_view written) : text(written), number(csv::number(written)) {
    if (number && std::isfinite(*number)) {
        text = csv::text(*number);
    } else {
        number.reset();
    }
}

Level::Level(double value) : text(csv::text(value)), number(value) {}

const Level* Configuration::find(std::string_view factor) const {
    const auto found = std::ranges::find(levels_, factor, &std::pair<std::string, Level>::first);
    return found == levels_.end() ? nullptr : &found->second;
}

std::optional<double> Configuration::number(std::string_view factor) const {
    const Level* level = find(factor);
    return level == nullptr ? std::nullopt : level->number;
}

void Configuration::set(const std::string& factor, Level level) {
    const auto found = std::ranges::find(levels_, factor, &std::pair<std::string, Level>::first);
    if (found == levels_.end()) {
        levels_.emplace_back(factor, std::move(level));
    } else {
        found->second = std::move(level);
    }
}

bool Workload::on_cpu() const {
    const auto device = std::ranges::find(arguments, "--device");
    return !model.empty() && device != arguments.end() && std::next(device) != arguments.end() &&
           *std::next(device) == "cpu";
}

nlohmann::json Configuration::json() const {
    auto object = nlohmann::json::object();
    for (const auto& [factor, level] : levels_) {
        const auto integer = csv::integer(level.text);
        object[factor] = integer        ? nlohmann::json(*integer)
                         : level.number ? nlohmann::json(*level.number)
                                        : nlohmann::json(level.text);
    }
    return object;
}

}  // namespace joulemark::study
