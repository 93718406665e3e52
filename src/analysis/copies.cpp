// SPDX-License-Identifier: Apache-2.0
#include "analysis/copies.h"

#include <algorithm>
#include <set>
#include <string>

namespace joulemark::analysis {

void mark_copied_runs(std::vector<RunMetrics>& runs) {
    std::set<std::string> known;
    for (const bool originals : {true, false}) {
        for (RunMetrics& run : runs) {
            if (run.original != originals) {
                continue;
            }
            const bool copied = std::ranges::any_of(
                run.origins, [&](const std::string& origin) { return known.contains(origin); });
            if (copied) {
                run.status = "copy";
            }
            known.insert(run.origins.begin(), run.origins.end());
        }
    }
}

}  // namespace joulemark::analysis
