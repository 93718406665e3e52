// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "program.h"

namespace {

/// Threads that wait for each other at the end of every operation would spin, and take the cores from the
/// threads that decode images: on two busy cores that makes training five times slower, and the energy of
/// spinning would be measured as the model's. OpenMP reads its variables when it is loaded, before main: only
/// the program's own pre-initialisers are earlier.
void wait_without_spinning(int, char**, char**) {
    setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
}
__attribute__((section(".preinit_array"), used)) void (*const before_openmp)(int, char**,
                                                                             char**) = wait_without_spinning;

}  // namespace

int main(int argc, char** argv) {
    return joulemark::train::program(argc, argv);
}
