// SPDX-License-Identifier: Apache-2.0
#include "engine/streams.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace joulemark::train {
namespace {

int first_error = 0;  ///< of standard output: the stream itself only knows that there was one

}  // namespace

void prepare_streams() {
    open_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of write(), as a full disk is
}

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && first_error == 0) {
        first_error = errno;
    }
}

void flush_output() {
    if (std::fflush(stdout) != 0 && first_error == 0) {
        first_error = errno;
    }
    if (first_error != 0) {
        throw environment_error("cannot write to standard output: {}", std::strerror(first_error));
    }
}

}  // namespace joulemark::train
