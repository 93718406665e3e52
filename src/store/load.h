// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"
#include "store/model.h"

namespace joulemark::store {

/// One of `of` disjoint parts of the runs, for readers side by side.
struct Share {
    unsigned number = 0, of = 1;
};

/// Records come with each host once: a folder that is a copy of another is left out, and a warning says so.

/// Calls `take` with one run of the share after the other, in the order of their names. Holds one run at a
/// time, which is what thousands of runs need.
void for_each_run(const Database& database, const std::function<void(RunRecord&&)>& take, Share share = {});

/// All runs, in the order of their names.
std::vector<RunRecord> load_runs(const Database& database);

/// The run of exactly this name, which must exist.
RunRecord load_run(const Database& database, const std::string& run);

/// The name of the run that `text` names or is an unambiguous beginning of; throws bad_input.
std::string find_run(const Database& database, const std::string& text);

/// The downsampled series of one run, by host, device and metric. Series of `metric` only unless it is "".
/// A counter appears as the power it implies, named `counter_power_w`.
std::vector<Series> load_series(const Database& database, const std::string& run,
                                const std::string& metric = "");

}  // namespace joulemark::store
