// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>
#include <vector>

#include <limits.h>
#include <unistd.h>

#include "program.h"

namespace {

/// Threads that wait for each other at the end of every operation would spin, and take the cores from the
/// threads that decode images: on two busy cores that makes training many times slower, and the energy of
/// spinning would be measured as the model's. OpenMP reads its variables when it is loaded, before main, and
/// from the environment that the kernel gave: so the program begins once more, with the variable in it. It
/// does so before any library has begun to initialise itself.
void wait_without_spinning(int, char** arguments, char** environment) {
    constexpr std::array<std::string_view, 3> decided = {"OMP_WAIT_POLICY=", "GOMP_SPINCOUNT=", "KMP_BLOCKTIME="};
    std::size_t count = 0;
    for (; environment[count] != nullptr; ++count) {
        const std::string_view variable = environment[count];
        for (const std::string_view name : decided) {
            if (variable.substr(0, name.size()) == name) {
                return;
            }
        }
    }
    std::array<char, PATH_MAX> path{};  // not /proc/self/exe itself: the process would be called "exe"
    if (readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) {
        return;
    }
    std::array<char, 24> passive{"OMP_WAIT_POLICY=passive"};
    std::vector<char*> extended(environment, environment + count);
    extended.insert(extended.end(), {passive.data(), nullptr});
    execve(path.data(), arguments, extended.data());  // where that fails, threads spin
}
__attribute__((section(".preinit_array"), used)) void (*const before_openmp)(int, char**,
                                                                             char**) = wait_without_spinning;

}  // namespace

int main(int argc, char** argv) {
    return joulemark::train::program(argc, argv);
}
