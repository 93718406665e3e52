// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/commands.h"

namespace joulemark::cli {

int version_command(const Arguments&) {
    fmt::print("joulemark {}\n", JOULEMARK_VERSION);
    return 0;
}

}  // namespace joulemark::cli
