// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/streams.h"  // say: for standard error

namespace joulemark::train {

/// Before anything else is opened: standard streams that are closed become /dev/null, lest a file take their
/// number; and a reader that goes away makes writing fail instead of ending the process.
void prepare_streams();

/// Text on standard output; `flush_output` tells whether it got there.
void print(std::string_view text);
/// Throws environment_error when standard output has not taken everything.
void flush_output();

}  // namespace joulemark::train
