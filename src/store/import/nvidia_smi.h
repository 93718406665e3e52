// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "store/import/run_folder.h"

namespace joulemark::store::imports {

/// Whether the first line of a file is that of an `nvidia-smi --query-gpu=timestamp,... --format=csv` log.
bool is_nvidia_smi_log(const std::filesystem::path& file);

/// Such a log as one run without regions: power, utilisation, clocks, temperature, memory, of one GPU or,
/// with a column index, uuid or pci.bus_id, of several. Units in cells ("56.38 W") or not; "[N/A]" is a gap.
/// Times are the log's local time, taken as they stand. Throws bad_input with the line for anything else.
Imported import_nvidia_smi(const std::filesystem::path& file, const Pairs& set,
                           const std::filesystem::path& results);

}  // namespace joulemark::store::imports
