// SPDX-License-Identifier: Apache-2.0
// Stands in for page.cpp in a build with JOULEMARK_WEB=OFF.
#include "report/html.h"

namespace joulemark::report {

std::optional<std::string_view> page() { return std::nullopt; }

}  // namespace joulemark::report
