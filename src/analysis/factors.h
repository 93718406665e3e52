// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "store/model.h"
#include "store/summary.h"

namespace joulemark::analysis {

using store::number;

/// The factors that make runs repeats of one configuration: those of the study and of `config` messages,
/// completed by what follows from them (global batch from local batch and GPUs, or the reverse), the GPUs
/// that were metered and the hardware; without what differs between repeats (seeds, positions).
nlohmann::json configuration_factors(const store::RunRecord& record);

/// Whether the study gave this factor, rather than the program or a product of other factors.
bool stated(const store::RunRecord& record, std::string_view name);

}  // namespace joulemark::analysis
