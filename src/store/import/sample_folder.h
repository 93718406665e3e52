// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "store/import/run_folder.h"

namespace joulemark::store::imports {

/// Whether `folder` holds what import_sample_folder reads.
bool is_sample_folder(const std::filesystem::path& folder);

/// Samples of one GPU that another program recorded, as one run:
///   fast.csv   begin_ns,end_ns and any of power_instant_mw, power_average_mw, sm_mhz
///   slow.csv   begin_ns,end_ns,energy_mj: the energy counter
///   marks.csv  kind,nominal_s,begin_ns,end_ns,count: true edges; every kind but `train` becomes regions
///              of that name
/// Times are of one monotonic clock. Throws bad_input with file and line for anything else.
Imported import_sample_folder(const std::filesystem::path& folder, const Pairs& set,
                              const std::filesystem::path& results);

}  // namespace joulemark::store::imports
