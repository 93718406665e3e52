// SPDX-License-Identifier: Apache-2.0
#include "study/yaml_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/csv.h"

namespace joulemark::study {
namespace {

constexpr int deepest = 16;  // An alias may refer to what contains it: yaml-cpp builds the circle.

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

bool quoted(const YAML::Node& node) {
    return node.Tag() == "!";
}

nlohmann::json to_json(const YAML::Node& node, const std::string& file, int depth) {
    if (depth > deepest) {
        throw bad_input("{}this is nested too deeply: {} levels at most", place(file, node), deepest);
    }
    if (node.IsMap()) {
        auto object = nlohmann::json::object();
        for (const auto& entry : YamlMap(node, file, "this mapping").entries()) {
            object[entry.key] = to_json(entry.value, file, depth + 1);
        }
        return object;
    }
    if (node.IsSequence()) {
        auto array = nlohmann::json::array();
        for (const YAML::Node& element : node) {
            array.push_back(to_json(element, file, depth + 1));
        }
        return array;
    }
    if (!node.IsScalar()) {
        return nullptr;
    }
    const std::string& text = node.Scalar();
    if (const auto number = scalar_number(node)) {
        const auto integer = csv::integer(text);
        return integer ? nlohmann::json(*integer) : nlohmann::json(*number);
    }
    if (!quoted(node) && (text == "true" || text == "false")) {
        return text == "true";
    }
    return text;
}

}  // namespace

std::string place(const std::string& file, const YAML::Node& node) {
    const YAML::Mark mark = node.Mark();
    return mark.is_null() ? file + ": " : fmt::format("{}:{}:{}: ", file, mark.line + 1, mark.column + 1);
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
    const auto nearest = std::ranges::min_element(
        candidates, {}, [&](std::string_view candidate) { return edit_distance(name, candidate); });
    if (nearest != candidates.end() &&
        edit_distance(name, *nearest) <= std::max<std::size_t>(2, name.size() / 3)) {
        return fmt::format("; did you mean '{}'?", *nearest);
    }
    return fmt::format("; known are {}", fmt::join(candidates, ", "));
}

std::optional<double> scalar_number(const YAML::Node& node) {
    if (!node.IsScalar() || quoted(node)) {
        return std::nullopt;
    }
    const auto number = csv::number(node.Scalar());
    return number && std::isfinite(*number) ? number : std::nullopt;
}

nlohmann::json to_json(const YAML::Node& node, const std::string& file) {
    return to_json(node, file, 0);
}

YamlMap::YamlMap(const YAML::Node& node, std::string file, std::string what)
    : node_(node), file_(std::move(file)), what_(std::move(what)) {
    if (!node.IsMap()) {
        throw error(node, "{} must be a mapping of keys to values", what_);
    }
    for (const auto& pair : node) {
        const YAML::Node& key = pair.first;
        if (!key.IsScalar()) {
            throw error(key, "a key of {} must be a single word", what_);
        }
        if (const Entry* first = find(key.Scalar())) {
            throw error(key, "'{}' stands twice in {}: it is already on line {}", key.Scalar(), what_,
                        first->key_node.Mark().line + 1);
        }
        entries_.push_back({key.Scalar(), key, pair.second});
    }
}

YamlMap::YamlMap(const YAML::Node& node, std::string file, std::string what,
                 std::span<const std::string_view> known)
    : YamlMap(node, std::move(file), std::move(what)) {
    for (const Entry& entry : entries_) {
        if (std::ranges::find(known, entry.key) == known.end()) {
            throw error(entry.key_node, "'{}' is no key of {}{}", entry.key, what_,
                        suggestion(entry.key, known));
        }
    }
}

const YamlMap::Entry* YamlMap::find(std::string_view key) const {
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    return found == entries_.end() ? nullptr : &*found;
}

const YAML::Node& YamlMap::node(std::string_view key) const {
    const Entry* entry = find(key);
    return entry == nullptr ? node_ : entry->value;
}

std::optional<std::string> YamlMap::text(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) {
        return std::nullopt;
    }
    if (!entry->value.IsScalar() || entry->value.Scalar().empty()) {
        throw error(entry->value, "'{}' must be a text", key);
    }
    return entry->value.Scalar();
}

std::optional<std::string> YamlMap::one_of(std::string_view key,
                                           std::span<const std::string_view> choices) const {
    const auto value = text(key);
    if (value && std::ranges::find(choices, *value) == choices.end()) {
        throw error(node(key), "'{}' must be one of {}, not '{}'", key, fmt::join(choices, ", "), *value);
    }
    return value;
}

std::optional<double> YamlMap::number(std::string_view key, double least) const {
    const Entry* entry = find(key);
    if (entry == nullptr) {
        return std::nullopt;
    }
    const auto value = scalar_number(entry->value);
    if (!value || *value < least) {
        const std::string range = least == positive ? " above 0"
                                  : least == std::numeric_limits<double>::lowest()
                                      ? ""
                                      : fmt::format(" of at least {}", least);
        throw error(entry->value, "'{}' must be a number{}", key, range);
    }
    return value;
}

std::optional<std::int64_t> YamlMap::integer(std::string_view key, std::int64_t least,
                                             std::int64_t most) const {
    const Entry* entry = find(key);
    if (entry == nullptr) {
        return std::nullopt;
    }
    const auto value = scalar_number(entry->value) ? csv::integer(entry->value.Scalar()) : std::nullopt;
    if (!value || *value < least || *value > most) {
        throw error(entry->value, "'{}' must be a whole number from {} to {}", key, least, most);
    }
    return value;
}

std::vector<std::string> YamlMap::texts(std::string_view key) const {
    std::vector<std::string> result;
    const Entry* entry = find(key);
    if (entry == nullptr) {
        return result;
    }
    if (!entry->value.IsSequence() || entry->value.size() == 0) {
        throw error(entry->value, "'{}' must be a list of texts, such as [a, b]", key);
    }
    for (const YAML::Node& element : entry->value) {
        if (!element.IsScalar()) {
            throw error(element, "each element of '{}' must be a text", key);
        }
        result.push_back(element.Scalar());
    }
    return result;
}

}  // namespace joulemark::study
