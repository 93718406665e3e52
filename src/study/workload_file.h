// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "study/study.h"
#include "study/yaml_map.h"

namespace joulemark::study {

/// The parts of a study file that say what is trained, and what is known of it before; study_file.cpp reads
/// how it is varied. Both throw bad_input with line and column.

/// The one `workload` of `owner`, or its list of `workloads`: their names differ.
std::vector<Workload> read_workloads(const YamlMap& owner);

/// Time and energy that `owner` says to expect; nothing where it has no `expect`.
std::optional<Expectation> read_expectation(const YamlMap& owner);

}  // namespace joulemark::study
