// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "engine/workload.h"

namespace joulemark::train {

/// Copies the weights of a safetensors file into the workload's module, by state-dict name. Buffers that the
/// file lacks keep their values (published weights often leave them out); everything else must match. Throws
/// bad_input that names the file and the tensors.
void load_weights(Workload& workload, const std::filesystem::path& path);

}  // namespace joulemark::train
