// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace joulemark::meter {

/// Where sockets and locks of one node live: the first writable of $XDG_RUNTIME_DIR, /run/user/<uid>,
/// /dev/shm and /tmp. Never a shared file system. Throws environment_error when there is none.
std::filesystem::path node_folder();

}  // namespace joulemark::meter
