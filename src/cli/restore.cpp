// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "controls/controls.h"

namespace joulemark::cli {

int restore_command(const Arguments& arguments) {
    CLI::App app("Puts back GPU power caps and clocks that a killed run left changed.", "restore");
    app.footer("Example: joulemark restore        (as root, or in the scheduler's epilog)");
    if (!parse(app, arguments)) {
        return 0;
    }
    using State = controls::Outcome::State;
    const controls::Restored restored = controls::restore_all();
    for (const auto& outcome : restored.outcomes) {
        fmt::print("{}\n", outcome.text);
    }
    for (const auto& note : restored.notes) {
        fmt::print("{}\n", note);
    }
    if (restored.outcomes.empty() && restored.notes.empty()) {
        fmt::print("nothing to restore\n");
    }
    const bool failed =
        std::ranges::any_of(restored.outcomes, [](const auto& o) { return o.state == State::failed; });
    return static_cast<int>(failed ? ExitCode::environment : ExitCode::ok);
}

}  // namespace joulemark::cli
