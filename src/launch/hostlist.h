// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemark::launch {

/// The hosts of a Slurm list such as "gpu[001-003,7],login1,r[1-2]n[1-2]", in order. A list that is not well
/// formed, or names more than 100,000 hosts, gives none.
std::vector<std::string> expand_hostlist(std::string_view list);

}  // namespace joulemark::launch
