// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "study/ledger.h"

namespace joulemark::study {

/// What a done run of a directory took, from its records; nothing when it is not done. Seconds are real ones:
/// absent where a simulated clock told them.
struct Taken {
    std::optional<double> wall_s;
    double disk_bytes = 0;
};
std::optional<Taken> taken(const std::filesystem::path& directory, const Study& study, const PlannedRun& run);

/// What is left of a study and what that takes, as far as it is known.
struct Remaining {
    std::size_t done = 0, left = 0, without_time = 0;
    double wall_s = 0;  ///< of those whose time is known, one after the other, without cooling down
    bool time_is_expected = false;  ///< some of it is from the study's `expect`, not from finished runs
    double disk_used_bytes = 0;
    std::optional<double> disk_bytes;  ///< of the left ones, from the size of the done ones

    /// "3 of 54 runs done, about 2 h 05 min left, 4.2 MB of about 76 MB on disk", what is unknown left out.
    std::string text(bool simulated) const;
};

/// Over the runs from `first_position` on; those before it were tried. The ledger knows the done ones.
Remaining remaining(const Study& study, const std::vector<PlannedRun>& runs, const std::vector<bool>& done,
                    const Ledger& ledger, int first_position = 1);

/// The same of what a directory holds.
Remaining remaining(const std::filesystem::path& directory, const Study& study,
                    const std::vector<PlannedRun>& runs);

/// "4.2 MB": of 1000 kB each.
std::string bytes_text(double bytes);

}  // namespace joulemark::study
