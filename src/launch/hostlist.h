// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::launch {

/// The hosts of a Slurm list such as "gpu[001-003,7],login1,r[1-2]n[1-2]", in order. A list that is not well
/// formed, or names more than 100,000 hosts, gives none.
std::vector<std::string> expand_hostlist(std::string_view list);

/// The number for one node of a Slurm list of counts such as "4(x2),1". Nothing when the list does not tell.
std::optional<int> count_on_node(std::string_view counts, int node);

}  // namespace joulemark::launch
