// SPDX-License-Identifier: Apache-2.0
#include "store/import/table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/units.h"

namespace joulemark::store::imports {
namespace {

using Kind = Field::Kind;

constexpr std::array fields{
    Field{"workload", Kind::factor, "workload"},
    Field{"hardware", Kind::factor, "hardware"},
    Field{"series", Kind::factor, "series"},
    Field{"gpus", Kind::factor, "gpus"},
    Field{"gpus_per_node", Kind::factor, "gpus_per_node"},
    Field{"local_batch", Kind::factor, "local_batch"},
    Field{"global_batch", Kind::factor, "global_batch"},
    Field{"power_cap_w", Kind::factor, "power_cap_w"},
    Field{"sm_clock_mhz", Kind::factor, "sm_clock_mhz"},
    Field{"samples", Kind::factor, "dataset_samples"},
    Field{"epochs", Kind::factor, "epochs"},
    Field{"repeat", Kind::repeat, "repeat"},
    Field{"epoch_time_s", Kind::result, "epoch_time_s"},
    Field{"wall_time_s", Kind::result, "wall_time_s"},
    Field{"gpu_hours", Kind::result, "gpu_hours"},
    Field{"mean_power_w", Kind::result, "mean_power_w"},
    Field{"energy_j", Kind::result, "energy_j"},
    Field{"energy_kwh", Kind::result, "energy_j", joules_per_kwh},
    Field{"epoch_time_s_sd", Kind::spread, "epoch_time_s"},
    Field{"wall_time_s_sd", Kind::spread, "wall_time_s"},
    Field{"gpu_hours_sd", Kind::spread, "gpu_hours"},
    Field{"mean_power_w_sd", Kind::spread, "mean_power_w"},
    Field{"energy_j_sd", Kind::spread, "energy_j"},
    Field{"energy_kwh_sd", Kind::spread, "energy_j", joules_per_kwh},
    Field{"repeats", Kind::repeats, "n"},
    Field{"component", Kind::component, "components"},
};
constexpr std::array<std::string_view, 4> text_fields{"workload", "hardware", "series", "component"};
constexpr std::array<std::string_view, 4> known_components{"cpu", "dram", "gpu", "node"};
/// Things that are counted.
constexpr std::array<std::string_view, 8> whole_fields{
    "gpus", "gpus_per_node", "local_batch", "global_batch", "samples", "epochs", "repeat", "repeats"};
/// Beyond these a cell is a slip, and what follows from it would overflow.
constexpr double largest_cell = 1e21, smallest_cell = 1e-21, most_counted = 9007199254740992;  // 2^53: exact in a double
/// A result that differs more from what others give is told.
constexpr double tolerated_difference = 0.05;

std::string trimmed(std::string text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// Where the value of a field comes from.
struct Origin {
    const Field* field;
    std::size_t column;
};

const Field& known_field(const std::string& name, std::string_view option) {
    const Field* field = find_field(name);
    if (field == nullptr) {
        throw bad_input("{} {}: there is no such field, there are {}", option, name, all_field_names());
    }
    return *field;
}

char separator_of(std::string_view header) {
    for (const char candidate : {',', ';', '\t'}) {
        if (header.find(candidate) != std::string_view::npos) {
            return candidate;
        }
    }
    return ',';
}

std::vector<Origin> choose_columns(const std::vector<std::string>& header, const Pairs& map,
                                   const std::filesystem::path& file) {
    std::vector<Origin> origins;
    const auto column_of = [&](std::string_view name) {
        if (std::ranges::count(header, name) > 1) {
            throw bad_input("{} has the column {} more than once: rename all but one of them", file.string(),
                            name);
        }
        return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
    };
    if (map.empty()) {
        for (const Field& field : fields) {
            if (const std::size_t column = column_of(field.name); column < header.size()) {
                origins.push_back({&field, column});
            }
        }
    }
    for (const auto& [name, wanted] : map) {
        const std::size_t column = column_of(wanted);
        if (column == header.size()) {
            throw bad_input("--map {}={}: {} has no such column, it has {}", name, wanted, file.string(),
                            fmt::join(header, ", "));
        }
        origins.push_back({&known_field(name, "--map"), column});
    }
    return origins;
}

std::vector<std::string> unused_columns(const std::vector<std::string>& header, const std::vector<Origin>& origins) {
    std::vector<std::string> unused;
    for (std::size_t column = 0; column < header.size(); ++column) {
        if (std::ranges::find(origins, column, &Origin::column) == origins.end()) {
            unused.push_back(header[column]);
        }
    }
    return unused;
}

/// What a row says.
struct TableRow {
    nlohmann::json factors = nlohmann::json::object(), metrics = factors;
    nlohmann::json given = factors;  ///< about the results: "n", "sd", "components"
};

/// "gpu+cpu" as the sorted list of what it names.
nlohmann::json components_of(const std::string& text, const std::string& where) {
    std::vector<std::string> components;
    csv::split(text, components, '+');
    for (std::string& component : components) {
        component = trimmed(component);
        if (std::ranges::find(known_components, component) == known_components.end()) {
            throw bad_input("{}: component is '{}', which is not one or several of {}, joined by +", where, text,
                            fmt::join(known_components, " "));
        }
    }
    std::ranges::sort(components);
    components.erase(std::ranges::unique(components).begin(), components.end());
    return components;
}

/// One value into its row.
void put(const Field& field, const std::string& text, TableRow& row, const std::string& where) {
    const auto value = csv::number(text);
    const bool is_text = std::ranges::find(text_fields, field.name) != text_fields.end();
    if (std::ranges::find(whole_fields, field.name) != whole_fields.end()) {
        const double least = field.kind == Kind::repeat ? 0 : 1;
        if (!value || *value < least || *value != std::floor(*value) || !std::isfinite(*value)) {
            throw bad_input("{}: {} is '{}', which is no whole number from {} up", where, field.name, text,
                            least);
        }
        if (*value > most_counted) {
            throw bad_input("{}: {} is '{}', which is more than can be counted", where, field.name, text);
        }
    } else if (!is_text && (!value || !std::isfinite(*value) || *value <= 0)) {
        throw bad_input("{}: {} is '{}', which is no number above 0", where, field.name, text);
    } else if (!is_text && (*value > largest_cell || *value < smallest_cell)) {
        throw bad_input("{}: {} is '{}', which is beyond what can be computed with ({} to {})", where, field.name,
                        text, smallest_cell, largest_cell);
    }
    const std::string key(field.key);
    switch (field.kind) {
        case Kind::result:
        case Kind::spread: {
            nlohmann::json& into = field.kind == Kind::result ? row.metrics : row.given["sd"];
            if (into.contains(key)) {
                throw bad_input("{0}: energy_j{1} and energy_kwh{1} are both given, give one", where,
                                field.kind == Kind::result ? "" : "_sd");
            }
            into[key] = *value * field.unit;
            break;
        }
        case Kind::factor:
            row.factors[key] = is_text ? nlohmann::json(text) : factor_value(text);
            break;
        case Kind::repeats:
            row.given[key] = static_cast<std::int64_t>(*value);
            break;
        case Kind::component:
            row.given[key] = components_of(text, where);
            break;
        case Kind::repeat:
            break;
    }
}

/// What does not fit together in a row.
std::vector<std::string> inconsistencies(const nlohmann::json& factors, const nlohmann::json& metrics) {
    std::vector<std::string> found;
    const auto compare = [&](const char* name, const nlohmann::json& other, const char* other_name,
                             double units, const char* unit) {
        if (!metrics.contains(name) || !metrics.contains("wall_time_s") || !other.contains(other_name)) {
            return;
        }
        const double told = metrics[name];
        const double product = other[other_name].get<double>() * metrics["wall_time_s"].get<double>() / units;
        if (std::abs(told / product - 1) > tolerated_difference) {
            found.push_back(
                fmt::format("{0} is {1:.4g}, {2} x wall_time_s is {3:.4g} {4}; {0} is what counts", name,
                            told, other_name, product, unit));
        }
    };
    compare("gpu_hours", factors, "gpus", 3600, "hours");
    compare("energy_j", metrics, "mean_power_w", 1, "joules");
    return found;
}

}  // namespace

const Field* find_field(std::string_view name) {
    const auto found = std::ranges::find(fields, name, &Field::name);
    return found == fields.end() ? nullptr : &*found;
}

std::string field_names(Kind kind) {
    std::string names;
    for (const Field& field : fields) {
        if (field.kind == kind) {
            names += (names.empty() ? "" : " ") + std::string(field.name);
        }
    }
    return names;
}

std::string all_field_names() {
    std::string names;
    for (const Field& field : fields) {
        names += (names.empty() ? "" : " ") + std::string(field.name);
    }
    return names;
}

Imported import_table(const std::filesystem::path& file, const Pairs& map, const Pairs& set,
                      const std::filesystem::path& results) {
    csv::LineReader lines(file.string());
    std::string_view line;
    if (!lines.next_or_rest(line)) {
        throw bad_input("{} is empty; a table begins with a line of column names", file.string());
    }
    if (line.starts_with("\xEF\xBB\xBF")) {
        line.remove_prefix(3);
    }
    const char separator = separator_of(line);
    std::vector<std::string> header;
    csv::split(line, header, separator);
    std::ranges::transform(header, header.begin(), trimmed);
    const auto origins = choose_columns(header, map, file);
    for (const auto& [name, value] : set) {
        known_field(name, "--set");
    }

    const std::string stem = run_stem(file, files::read(file).value_or(""), map, set);
    Imported imported;
    std::vector<RunFolder> folders;
    bool spread_without_repeats = false;
    std::vector<std::string> cells;
    while (lines.next_or_rest(line)) {
        if (trimmed(std::string(line)).empty()) {
            continue;
        }
        const std::string where = fmt::format("{} line {}", file.string(), lines.line_number());
        if (std::ranges::count(line, '"') % 2 != 0) {
            throw bad_input("{} has a quote that is never closed", where);
        }
        csv::split(line, cells, separator);
        if (cells.size() != header.size()) {
            throw bad_input("{} has {} cells, its header has {}", where, cells.size(), header.size());
        }
        TableRow row;
        for (const auto& [field, column] : origins) {
            if (const std::string cell = trimmed(cells[column]); !cell.empty()) {
                put(*field, cell, row, where);
            }
        }
        for (const auto& [name, value] : set) {
            put(*find_field(name), value, row, "--set");
        }
        if (row.given.contains("sd") && !row.given.contains("n")) {
            spread_without_repeats = true;
            row.given.erase("sd");
        }
        if (row.metrics.empty()) {
            imported.notes.push_back(fmt::format("{} has no result and was passed over", where));
            continue;
        }
        for (const std::string& doubt : inconsistencies(row.factors, row.metrics)) {
            imported.notes.push_back(fmt::format("{}: {}", where, doubt));
        }
        RunFolder folder;
        folder.run = fmt::format("{}-{:04}", stem, folders.size() + 1);
        folder.run_json = {
            {"name", file.stem().string()},
            {"factors", row.factors},
            {"imported",
             {{"file", file.filename().string()}, {"line", lines.line_number()}, {"metrics", row.metrics}}}};
        folder.run_json["imported"].update(row.given);
        folders.push_back(std::move(folder));
    }
    if (folders.empty()) {
        throw bad_input(
            "{} gives no result: name a column of results, as --map energy_kwh=COLUMN; results are {}; its columns "
            "are {}",
            file.string(), field_names(Kind::result), fmt::join(header, ", "));
    }
    if (const auto unused = unused_columns(header, origins); !unused.empty()) {
        imported.notes.push_back(fmt::format("{}: not used: {} (--map FIELD=COLUMN says what a column means)",
                                             file.string(), fmt::join(unused, ", ")));
    }
    if (spread_without_repeats) {
        imported.notes.push_back(fmt::format(
            "{}: the standard deviations are not used: of how many repeats is not given, as --set repeats=5",
            file.string()));
    }
    for (const RunFolder& folder : folders) {  // all rows are good before the first is written
        folder.write(results);
        imported.runs.push_back(folder.run);
    }
    return imported;
}

}  // namespace joulemark::store::imports
