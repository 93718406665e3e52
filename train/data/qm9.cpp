// SPDX-License-Identifier: Apache-2.0
#include "data/qm9.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include "core/csv.h"

namespace joulemark::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_atoms = 1000;
constexpr double largest_number = 1e30;  // no molecule has such, and nothing made of it leaves fp32's range

std::optional<std::uint8_t> atomic_number(std::string_view symbol) {
    static constexpr std::array<std::pair<std::string_view, std::uint8_t>, 5> elements = {
        {{"H", 1}, {"C", 6}, {"N", 7}, {"O", 8}, {"F", 9}}};
    const auto found = std::ranges::find(elements, symbol, &std::pair<std::string_view, std::uint8_t>::first);
    return found == elements.end() ? std::nullopt : std::optional(found->second);
}

/// Splits at blanks and counts lines.
class Lines {
  public:
    explicit Lines(std::string_view text) : rest_(text) {}
    /// The fields of the next line; none at the end of the text.
    const std::vector<std::string_view>& next() {
        const auto end = std::min(rest_.find('\n'), rest_.size());
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(std::min(rest_.size(), end + 1));
        ++number_;
        fields_.clear();
        for (;;) {
            line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t\r")));
            if (line.empty()) {
                return fields_;
            }
            const auto length = std::min(line.size(), line.find_first_of(" \t\r"));
            fields_.push_back(line.substr(0, length));
            line.remove_prefix(length);
        }
    }
    int number() const { return number_; }

  private:
    std::string_view rest_;
    std::vector<std::string_view> fields_;
    int number_ = 0;
};

/// A number that a molecule can have, with Mathematica's `*^` for the exponent too.
std::optional<double> parse_number(std::string_view field) {
    std::optional<double> value;
    if (const auto caret = field.find("*^"); caret == std::string_view::npos) {
        value = csv::number(field);
    } else {
        value = csv::number(fmt::format("{}e{}", field.substr(0, caret), field.substr(caret + 2)));
    }
    return value && std::abs(*value) <= largest_number ? value : std::nullopt;
}

}  // namespace

Result<Qm9Molecule> parse_qm9(std::string_view text, const std::string& file) {
    Lines lines(text);
    const auto wrong = [&](const std::string& what) {
        return Failure{fmt::format("{} line {}: {}", file, lines.number(), what),
                       "take the file from the data set anew"};
    };
    const auto first = lines.next();
    const auto atoms = first.size() == 1 ? csv::integer(first[0]) : std::nullopt;
    if (!atoms || *atoms < 1 || *atoms > most_atoms) {
        return wrong("it must be the number of atoms");
    }
    Qm9Molecule molecule;
    const auto properties = lines.next();
    if (properties.size() != 2 + qm9_columns || properties[0] != "gdb") {
        return wrong(fmt::format("it must be 'gdb', a number and {} properties", qm9_columns));
    }
    for (std::size_t i = 0; i < qm9_columns; ++i) {
        const auto value = parse_number(properties[i + 2]);
        if (!value) {
            return wrong(fmt::format("'{}' is not a number", properties[i + 2]));
        }
        molecule.properties[i] = *value;
    }
    for (std::int64_t atom = 0; atom < *atoms; ++atom) {
        const auto& fields = lines.next();
        if (fields.size() != 5) {
            return wrong(fmt::format("only {} atoms, though the first line says {}", atom, *atoms));
        }
        const auto z = atomic_number(fields[0]);
        if (!z) {
            return wrong(fmt::format("'{}' is none of the elements H, C, N, O, F", fields[0]));
        }
        molecule.z.push_back(*z);
        for (std::size_t axis = 1; axis <= 3; ++axis) {
            const auto value = parse_number(fields[axis]);
            if (!value) {
                return wrong(fmt::format("'{}' is not a coordinate", fields[axis]));
            }
            molecule.position.push_back(*value);
        }
        // There is no direction from one to the other, and no angle there.
        for (std::size_t other = 0; other < static_cast<std::size_t>(atom); ++other) {
            if (std::equal(molecule.position.end() - 3, molecule.position.end(),
                           molecule.position.begin() + static_cast<std::ptrdiff_t>(3 * other))) {
                return wrong(fmt::format("atoms {} and {} are at the same place", other + 1, atom + 1));
            }
        }
    }
    if (const auto& after = lines.next(); after.size() == 5 && atomic_number(after[0])) {
        return wrong(fmt::format("more atoms than the {} that the first line says", *atoms));
    }
    return molecule;
}

std::vector<std::string> find_qm9_files(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw bad_input(
            "there is no QM9 folder {}: --dataset takes 'synthetic' or the folder into which QM9's archive "
            "of .xyz files was unpacked",
            folder.string());
    }
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code unreadable;  // which is told where it is read
        if (entry->path().extension() == ".xyz" && entry->is_regular_file(unreadable)) {
            names.push_back(entry->path().filename().string());
        }
    }
    if (error) {
        throw bad_input("cannot read the QM9 folder {}: {}", folder.string(), error.message());
    }
    if (names.empty()) {
        throw bad_input("{} holds no .xyz file: unpack QM9's archive of per-molecule files there",
                        folder.string());
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace joulemark::train
