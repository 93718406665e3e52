// SPDX-License-Identifier: Apache-2.0
#include "engine/failure.h"

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <c10/util/Exception.h>

namespace joulemark::train {

Error as_error(const std::exception& error) {
    if (const auto* known = dynamic_cast<const Error*>(&error)) {
        return *known;
    }
    std::string text = error.what();
    if (dynamic_cast<const std::system_error*>(&error) != nullptr) {
        return environment_error("{}", text);
    }
    if (const auto* from_torch = dynamic_cast<const c10::Error*>(&error)) {
        text = from_torch->what_without_backtrace();
    }
    // The allocator, and sizes that it is not even asked for, are told in words only.
    const bool too_large = text.find("can't allocate memory") != std::string::npos ||
                           text.find("size calculation overflowed") != std::string::npos;
    if (too_large || dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
        dynamic_cast<const std::length_error*>(&error) != nullptr) {
        return environment_error(
            "the memory does not suffice: lower --local-batch, or the size of the model (--set) or of the "
            "data");
    }
    text.resize(text.find('\n') == std::string::npos ? text.size() : text.find('\n'));
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
        return environment_error("the GPU's memory is full: lower --local-batch or --image-size ({})", text);
    }
    return environment_error("libtorch failed: {}", text);
}

}  // namespace joulemark::train
