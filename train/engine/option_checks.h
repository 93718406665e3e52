// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/csv.h"
#include "core/error.h"
#include "engine/options.h"

namespace joulemark::train {

/// A number in a range; NaN, which compares as neither, is in none.
inline CLI::Validator number(double least, double most) {
    return {[least, most](std::string& text) {
                const auto value = csv::number(text);
                return value && *value >= least && *value <= most
                           ? std::string()
                           : fmt::format("'{}' is not a number from {} to {}", text, least, most);
            },
            "NUMBER"};
}

/// What 64 bits hold without a sign: a sign, or more, would be taken for another number.
inline CLI::Validator seed() {
    return {[](std::string& text) {
                std::uint64_t value = 0;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                return error == std::errc() && end == text.data() + text.size()
                           ? std::string()
                           : fmt::format("'{}' is not a whole number from 0 to {}", text,
                                         std::numeric_limits<std::uint64_t>::max());
            },
            "NUMBER"};
}

/// An option that takes a path must not be given an empty one, as by a script's variable that is not set.
inline void check_path(const std::string& option, const std::string& path) {
    if (path.empty()) {
        throw bad_input("{} is empty: it takes a path", option);
    }
}

/// The same for a path that is read. To open a pipe would wait for a writer.
inline void check_input(const std::string& option, const std::string& path) {
    check_path(option, path);
    std::error_code error;  // which is told where the path is opened
    const auto type = std::filesystem::status(path, error).type();
    using enum std::filesystem::file_type;
    if (type == fifo || type == socket || type == block || type == character) {
        throw bad_input("{} {} is neither a file nor a folder", option, path);
    }
}

inline const std::map<std::string, DeviceChoice> devices = {
    {"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}};

/// An option that takes one of these names; `target` is a Value, or an optional of one.
template <typename Value, typename Target>
CLI::Option* choice(CLI::App& app, const std::string& name, Target& target,
                    const std::map<std::string, Value>& values, const std::string& help) {
    std::string names;
    for (const auto& [text, ignored] : values) {
        names += (names.empty() ? "" : "|") + text;
    }
    return app
        .add_option_function<std::string>(
            name,
            [&target, &values, name, names](const std::string& text) {
                const auto found = values.find(text);
                if (found == values.end()) {
                    throw bad_input("{} takes {}, not '{}'", name, names, text);
                }
                target = found->second;
            },
            help)
        ->type_name(names);
}

}  // namespace joulemark::train
