// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace joulemark::study {

/// What a run's folder says; nothing else remembers progress.
struct RunState {
    enum class Kind {
        absent,  ///< no folder
        cut,     ///< a host is missing, or has no end.json
        failed,  ///< all hosts ended, not all with exit status 0
        done
    };
    Kind kind = Kind::absent;
    int exit_status = 0;  ///< of a failed run: the first of a rank that is not 0
};

/// Reads DIR/runs/<run>: docs/schema.md.
RunState run_state(const std::filesystem::path& directory, const std::string& run);

/// Moves what is left of an attempt from DIR/runs/<run> to DIR/superseded/<run>-<n>, where no analysis looks.
void supersede(const std::filesystem::path& directory, const std::string& run);

}  // namespace joulemark::study
