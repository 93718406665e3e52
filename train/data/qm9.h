// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace joulemark::train {

/// A property of QM9, in the order and the units of PyTorch Geometric's targets 0 to 11.
struct Qm9Target {
    const char* name;
    const char* unit;
    std::size_t column;  ///< in a file's property line: 0 for the rotational constant A
    double factor;       ///< from the file's unit
};
constexpr std::size_t qm9_columns = 15;
inline constexpr double electronvolts_per_hartree = 27.211386245988;  ///< CODATA 2018
inline constexpr std::array<Qm9Target, 12> qm9_targets = {{
    {"mu", "D", 3, 1},
    {"alpha", "Bohr^3", 4, 1},
    {"homo", "eV", 5, electronvolts_per_hartree},
    {"lumo", "eV", 6, electronvolts_per_hartree},
    {"gap", "eV", 7, electronvolts_per_hartree},
    {"r2", "Bohr^2", 8, 1},
    {"zpve", "eV", 9, electronvolts_per_hartree},
    {"U0", "eV", 10, electronvolts_per_hartree},
    {"U", "eV", 11, electronvolts_per_hartree},
    {"H", "eV", 12, electronvolts_per_hartree},
    {"G", "eV", 13, electronvolts_per_hartree},
    {"Cv", "cal/(mol K)", 14, 1},
}};

struct Qm9Molecule {
    std::vector<std::uint8_t> z;                   ///< atomic numbers: 1, 6, 7, 8, 9
    std::vector<double> position;                  ///< x, y, z of each atom in Angstrom
    std::array<double, qm9_columns> properties{};  ///< as the file has them
};

/// A molecule of QM9's original files (Ramakrishnan et al. 2014): the number of atoms; a line `gdb N A B C mu
/// ...`; a line per atom with its symbol, coordinates and charge; frequencies; SMILES; InChI. Exponents may
/// be written
/// `*^`. A failure names file and line: another number of atoms than the first line says, an unknown element,
/// no number or one beyond 10^30, two atoms at one place.
Result<Qm9Molecule> parse_qm9(std::string_view text, const std::string& file);

/// The .xyz files of a folder, by name. Throws bad_input when there is no such folder or no such file.
std::vector<std::string> find_qm9_files(const std::filesystem::path& folder);

}  // namespace joulemark::train
