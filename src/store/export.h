// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "store/database.h"

namespace joulemark::store {

enum class ExportFormat { csv, jsonl };

/// The protocol's output (Frey et al. 2022) in open formats, units in the columns' names; docs/schema.md
/// lists the columns. Written to `out`, which is made where it does not exist:
///  * timeseries: one row per device and sample at full resolution, streamed from the run files;
///  * epochs: one row per epoch (or block of steps), hosts added up;
///  * runs: one row per run with its factors.
/// What was not measured is an empty field, or a missing key. Throws environment_error when `out` cannot be
/// written.
void export_results(const std::filesystem::path& dir, const Database& database, ExportFormat format,
                    const std::filesystem::path& out);

}  // namespace joulemark::store
