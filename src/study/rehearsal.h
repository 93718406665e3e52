// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "study/study.h"

namespace joulemark::study {

/// The study with simulated training in place of its workloads, on simulated GPUs, in one process: what its
/// results will look like, in minutes instead of GPU-days. Factors, series, repeats and order stay. The
/// simulated work obeys `truth` (docs/simulation.md) and, where that says nothing, the time and scaling that
/// the study expects of each workload.
Study rehearsal(Study study, const std::string& accelerator, const nlohmann::json& truth);

}  // namespace joulemark::study
