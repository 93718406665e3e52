// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "store/import/run_folder.h"

namespace joulemark::store::imports {

/// Whether the first line of a file is that of an `nvidia-smi --query-gpu=timestamp,... --format=csv` log.
bool is_nvidia_smi_log(const std::filesystem::path& file);

/// Such a log as one run without regions: power, utilisation, clocks, temperature, memory, of one GPU or,
/// with a column index, uuid or pci.bus_id, of several. Units in cells ("56.38 W") or not; "[N/A]" is a gap.
/// Times are the log's local time; where it stepped back, time goes on one period later. A last line without
/// its end is dropped. Both are noted. Throws bad_input with the line for anything else, and where rows of
/// several GPUs come without such a column.
Imported import_nvidia_smi(const std::filesystem::path& file, const Pairs& set,
                           const std::filesystem::path& results);

}  // namespace joulemark::store::imports
