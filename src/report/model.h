// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "store/model.h"

namespace joulemark::report {

/// Everything a report shows: one document, which its writers only lay out. Nothing is computed from it
/// but what a reader can check against it.
struct Model {
    nlohmann::json analysis;     ///< the document of `joulemark analyze --json`
    nlohmann::json study;        ///< study.json, or null for runs that belong to no sweep
    nlohmann::json environment;  ///< see report/environment.h
    nlohmann::json generated;    ///< {version, at, command, source, omitted[]{what, reason}}
    std::vector<store::Series> traces;
};

}  // namespace joulemark::report
