// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "study/site.h"

namespace joulemark::study {

struct SweepOptions {
    std::filesystem::path directory;
    std::optional<double> budget_j;
    bool keep_going = false;  ///< however many runs fail one after the other
    bool quiet = false;
    std::string again = {};  ///< the command line that makes what is left, for people
};

/// Makes the runs that DIR does not hold yet, one after the other, each as `joulemark run` in a process of
/// its own. Progress is what the run folders say (run_state.h), so an interrupted sweep goes on where it
/// stopped; an attempt that was cut or failed is moved away and repeated.
///
/// It stops when three runs in a row have failed, unless told to keep going, and as soon as DIR can no longer
/// be written.
///
/// Exit status: 0 when every planned run is done or skipped with a reason (and at least one is done), 3 when
/// some failed or the sweep was stopped, 128+n after signal n. Throws bad_input and environment_error
/// before the first run: a changed study, a missing program or data set, a second sweep in the same
/// directory.
int sweep(const Study& study, const Site& site, const SweepOptions& options);

}  // namespace joulemark::study
