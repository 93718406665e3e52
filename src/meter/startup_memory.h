// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace joulemark::meter {

/// Takes the code and constants of this program and its libraries out of its resident memory. Opening sensors
/// runs through megabytes of driver code that sampling never needs again; what is needed comes back from the
/// page cache by itself, a page at a time. Memory that this process wrote to is left alone; a debugger's
/// breakpoints set before are not.
void release_startup_memory();

}  // namespace joulemark::meter
