// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace joulemark::train {

/// joulemark-train: its commands and options, its ranks, its errors as one sentence; gives the exit status.
int program(int argc, char** argv);

}  // namespace joulemark::train
