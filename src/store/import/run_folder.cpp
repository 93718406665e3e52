// SPDX-License-Identifier: Apache-2.0
#include "store/import/run_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/run_format.h"
#include "store/import/table.h"

namespace joulemark::store::imports {
namespace {

constexpr std::string_view host = "imported";

std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash;
}

}  // namespace

Pairs parse_pairs(const std::vector<std::string>& texts, std::string_view option) {
    Pairs pairs;
    for (const std::string& text : texts) {
        std::vector<std::string> parts;
        csv::split(text, parts);
        for (const std::string& part : parts) {
            const std::size_t equals = part.find('=');
            if (equals == std::string::npos || equals == 0 || equals + 1 == part.size()) {
                throw bad_input("{} '{}' is not FIELD={}", option, part,
                                option == "--map" ? "COLUMN" : "VALUE");
            }
            if (!pairs.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
                throw bad_input("{} gives the field '{}' twice", option, part.substr(0, equals));
            }
        }
    }
    return pairs;
}

nlohmann::json factor_value(std::string_view text) {
    if (const auto whole = csv::integer(text)) {
        return *whole;
    }
    if (const auto value = csv::number(text)) {
        return *value;
    }
    return text;
}

nlohmann::json factors_of(const Pairs& set) {
    nlohmann::json factors = nlohmann::json::object();
    for (const auto& [field, value] : set) {
        const Field* known = find_field(field);
        if (known == nullptr || known->kind != Field::Kind::factor) {
            throw bad_input("--set {}: a recorded run takes the fields {}", field,
                            field_names(Field::Kind::factor));
        }
        factors[std::string(known->key)] = factor_value(value);
    }
    return factors;
}

std::string run_stem(const std::filesystem::path& file, std::string_view content, const Pairs& map,
                     const Pairs& set) {
    std::uint64_t hash = fnv1a(0xcbf29ce484222325u, content);
    for (const Pairs* pairs : {&map, &set}) {
        for (const auto& [field, value] : *pairs) {
            hash = fnv1a(hash, fmt::format("\n{}={}", field, value));
        }
        hash = fnv1a(hash, "\n");
    }
    std::string stem = file.has_stem() ? file.stem().string() : file.parent_path().filename().string();
    std::ranges::replace_if(
        stem, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
    return fmt::format("{}-{:08x}", stem, static_cast<std::uint32_t>(hash ^ (hash >> 32)));
}

void RunFolder::write(const std::filesystem::path& results) const {
    const auto folder = results / run_format::runs_folder / run / host;
    files::make_directories(folder);
    nlohmann::json document = run_json;
    document.update({{"schema", run_format::schema},
                     {"joulemark_version", JOULEMARK_VERSION},
                     {"run", run},
                     {"host", host},
                     {"expected_hosts", {host}},
                     {"study", nullptr},
                     {"start_ns", start_ns},
                     {"clock", "monotonic"},
                     {"simulated", false}});
    files::write_atomically(folder / run_format::run_file, document.dump(1) + '\n');
    for (const auto& [name, content] : files) {
        files::write_atomically(folder / name, content);
    }
    const nlohmann::json end{
        {"end_ns", end_ns}, {"exit_status", 0}, {"signal", nullptr}, {"warnings", nlohmann::json::array()}};
    files::write_atomically(folder / run_format::end_file, end.dump(1) + '\n');
}

}  // namespace joulemark::store::imports
