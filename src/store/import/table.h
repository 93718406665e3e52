// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "store/import/run_folder.h"

namespace joulemark::store::imports {

/// What a column of a table may mean (product.md, "Contracts that scripts rely on").
struct Field {
    enum class Kind {
        factor,
        result,
        spread,   ///< standard deviation of one repeat about a result that is a mean
        repeats,  ///< how many runs the results are the mean of
        component,
        repeat
    };
    std::string_view name;
    Kind kind;
    std::string_view key;  ///< in factors, or of the metric
    double unit = 1;       ///< times this gives the metric's unit
};

const Field* find_field(std::string_view name);
/// "workload hardware series ...".
std::string field_names(Field::Kind kind);
std::string all_field_names();

/// One run per row of a CSV file with a header (separator , ; or tab). `map` says which column is which
/// field, without it columns named as fields are taken; `set` gives constants. An empty cell is not measured.
/// Throws bad_input with the file's line for a missing column, an unknown field, a cell that is no number, a
/// table without any result.
Imported import_table(const std::filesystem::path& file, const Pairs& map, const Pairs& set,
                      const std::filesystem::path& results);

}  // namespace joulemark::store::imports
