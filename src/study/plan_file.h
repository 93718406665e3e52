// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/design.h"

namespace joulemark::study {

/// DIR/study.json as docs/schema.md describes it: the study, its settings, and its runs in their order.
nlohmann::json plan_json(const Study& study, const std::vector<PlannedRun>& runs);

/// Reconciles a fresh plan with the study.json of an earlier call, if there is one. Runs that the earlier
/// call planned keep their positions; added ones follow. Throws bad_input when anything else than added runs
/// differs: results of two different studies do not belong into one directory. As long as no run of the
/// earlier plan is done there are no results, and the plan begins anew: gives the runs that it no longer has.
std::vector<std::string> continue_plan(const std::filesystem::path& directory, const Study& study,
                                       std::vector<PlannedRun>& runs);

/// Writes study.json. Throws environment_error when it cannot.
void write_plan(const std::filesystem::path& directory, const Study& study,
                const std::vector<PlannedRun>& runs);

}  // namespace joulemark::study
