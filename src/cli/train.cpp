// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "cli/commands.h"
#include "core/error.h"
#include "launch/programs.h"

namespace joulemark::cli {

/// Hands over to joulemark-train, which alone knows its options: joulemark itself stays free of libtorch.
int train_command(const Arguments& arguments) {
    const auto program = launch::find_program("joulemark-train");
    if (!program) {
        throw environment_error(
            "joulemark-train is neither beside joulemark nor on PATH: build it with "
            "`cmake --preset release` (or gpu), which needs the PyTorch wheel: see scripts/deps.sh");
    }
    std::vector<std::string> words{program->string()};
    words.insert(words.end(), arguments.options.begin(), arguments.options.end());
    if (arguments.has_separator) {
        words.emplace_back("--");
        words.insert(words.end(), arguments.child.begin(), arguments.child.end());
    }
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    execv(argv.front(), argv.data());
    throw environment_error("cannot execute {}: {}", program->string(), std::strerror(errno));
}

}  // namespace joulemark::cli
