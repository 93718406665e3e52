// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "core/error.h"

namespace joulemark::study {

/// "file:line:column: ", of a node, as editors understand it.
std::string place(const std::string& file, const YAML::Node& node);

/// The candidate nearest to a misspelt name as "; did you mean 'x'?", or the list of them when none is near.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

/// As the least of a number: any above 0.
inline constexpr double positive = std::numeric_limits<double>::min();

/// A mapping whose keys are all known and all different; yaml-cpp itself accepts doubled ones silently and
/// lets the last win. All accessors throw bad_input with file, line and column; `what` names the mapping.
class YamlMap {
  public:
    YamlMap(const YAML::Node& node, std::string file, std::string what,
            std::span<const std::string_view> known);
    /// A mapping with any keys, each at most once.
    YamlMap(const YAML::Node& node, std::string file, std::string what);

    struct Entry {
        std::string key;
        YAML::Node key_node, value;
    };
    const std::vector<Entry>& entries() const& { return entries_; }
    std::vector<Entry> entries() && { return std::move(entries_); }
    bool has(std::string_view key) const { return find(key) != nullptr; }
    /// Of `key`, or of the mapping where there is none.
    const YAML::Node& node(std::string_view key) const;

    std::optional<std::string> text(std::string_view key) const;
    std::optional<std::string> one_of(std::string_view key, std::span<const std::string_view> choices) const;
    /// `least` may be `positive`, or numeric_limits::lowest() for any number at all.
    std::optional<double> number(std::string_view key, double least) const;
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least,
                                        std::int64_t most = 1'000'000'000) const;
    std::vector<std::string> texts(std::string_view key) const;  ///< a list of scalars; empty when absent

    template <typename... Args>
    [[nodiscard]] Error error(const YAML::Node& at, fmt::format_string<Args...> format,
                              Args&&... args) const {
        return bad_input("{}{}", place(file_, at), fmt::format(format, std::forward<Args>(args)...));
    }
    const std::string& file() const { return file_; }
    const std::string& what() const { return what_; }

  private:
    const Entry* find(std::string_view key) const;

    YAML::Node node_;
    std::string file_;
    std::string what_;
    std::vector<Entry> entries_;
};

/// A finite number written as a plain scalar, or nothing.
std::optional<double> scalar_number(const YAML::Node& node);

/// The node as JSON: plain scalars that are numbers or booleans become such, quoted ones stay text.
nlohmann::json to_json(const YAML::Node& node, const std::string& file);

}  // namespace joulemark::study
