// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "core/error.h"

namespace joulemark::train {

/// Any exception as one sentence with an exit code: libtorch's without its stack trace, a full GPU with what
/// helps.
Error as_error(const std::exception& error);

}  // namespace joulemark::train
