// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// The part of JSON Schema (2020-12) that docs/analyze.schema.json uses; a keyword outside it throws, so that
/// no rule goes unchecked.
namespace joulemark::analysis {

class SchemaCheck {
  public:
    explicit SchemaCheck(nlohmann::json schema) : schema_(std::move(schema)) {}

    /// Every violation, with the path to it.
    std::vector<std::string> violations(const nlohmann::json& document) {
        violations_.clear();
        check(schema_, document, "");
        return violations_;
    }

  private:
    using json = nlohmann::json;

    void report(const std::string& path, const std::string& what) {
        violations_.push_back(path + ": " + what);
    }

    static bool is_type(const json& value, const std::string& type) {
        return type == "object"    ? value.is_object()
               : type == "array"   ? value.is_array()
               : type == "string"  ? value.is_string()
               : type == "boolean" ? value.is_boolean()
               : type == "null"    ? value.is_null()
               : type == "integer" ? value.is_number_integer()
               : type == "number"  ? value.is_number()
                                   : throw std::logic_error("type " + type);
    }

    void check(const json& rules, const json& value, const std::string& path) {
        for (const auto& [keyword, rule] : rules.items()) {
            if (keyword == "$ref") {
                check(schema_.at(json::json_pointer(rule.get<std::string>().substr(1))), value, path);
            } else if (keyword == "type") {
                const auto types = rule.is_array() ? rule.get<std::vector<std::string>>()
                                                   : std::vector{rule.get<std::string>()};
                if (std::ranges::none_of(types,
                                         [&](const std::string& type) { return is_type(value, type); })) {
                    report(path, "is " + std::string(value.type_name()) + ", not " + rule.dump());
                }
            } else if (keyword == "required") {
                for (const auto& name : rule) {
                    if (value.is_object() && !value.contains(name.get<std::string>())) {
                        report(path, "lacks " + name.get<std::string>());
                    }
                }
            } else if (keyword == "properties" || keyword == "additionalProperties") {
                if (keyword == "properties" && value.is_object()) {
                    check_members(rules, value, path);
                } else if (keyword == "additionalProperties" && value.is_object() &&
                           !rules.contains("properties")) {
                    check_members(rules, value, path);
                }
            } else if (keyword == "items") {
                for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
                    check(rule, value[i], path + "/" + std::to_string(i));
                }
            } else if (keyword == "enum" || keyword == "const") {
                const json allowed = keyword == "enum" ? rule : json::array({rule});
                if (std::ranges::find(allowed, value) == allowed.end()) {
                    report(path, value.dump() + " is not one of " + allowed.dump());
                }
            } else if (keyword == "minItems" || keyword == "maxItems") {
                if (value.is_array() && (keyword == "minItems" ? value.size() < rule : value.size() > rule)) {
                    report(path, "has " + std::to_string(value.size()) + " items");
                }
            } else if (keyword == "minimum") {
                if (value.is_number() && value < rule) {
                    report(path, value.dump() + " is below " + rule.dump());
                }
            } else if (keyword != "$schema" && keyword != "$defs" && keyword != "title" &&
                       keyword != "description") {
                throw std::logic_error("unknown keyword " + keyword);
            }
        }
    }

    void check_members(const json& rules, const json& value, const std::string& path) {
        static const json none = json::object();
        const json& properties = rules.contains("properties") ? rules["properties"] : none;
        for (const auto& [name, member] : value.items()) {
            if (properties.contains(name)) {
                check(properties[name], member, path + "/" + name);
            } else if (const auto other = rules.find("additionalProperties"); other != rules.end()) {
                if (other->is_boolean() && *other == false) {
                    report(path, "has an unknown member " + name);
                } else if (other->is_object()) {
                    check(*other, member, path + "/" + name);
                }
            }
        }
    }

    json schema_;
    std::vector<std::string> violations_;
};

}  // namespace joulemark::analysis
