// SPDX-License-Identifier: Apache-2.0
#include "engine/loss_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"

namespace joulemark::train {
namespace {

Error cannot_write(const std::string& path, int error) {
    return environment_error("cannot write {}: {}", path, std::strerror(error));
}

/// Where line `lines` begins, or the end of the text.
std::size_t beginning_of(std::size_t lines, const std::string& text) {
    std::size_t at = 0;
    while (lines-- > 0 && at < text.size()) {
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }
    return at;
}

}  // namespace

LossLog::LossLog(const std::string& path, std::int64_t kept) : path_(path) {
    std::error_code error;
    if (kept > 0 && std::filesystem::is_regular_file(path, error)) {
        const auto before = files::read(path);
        if (!before) {
            throw cannot_write(path, errno);
        }
        std::filesystem::resize_file(path, beginning_of(static_cast<std::size_t>(kept), *before), error);
        if (error) {
            throw cannot_write(path, error.value());
        }
    }
    file_.reset(std::fopen(path.c_str(), kept > 0 ? "ae" : "we"));
    if (!file_) {
        throw cannot_write(path, errno);
    }
}

void LossLog::add(double loss) {
    fmt::memory_buffer line;
    fmt::format_to(std::back_inserter(line), "{}\n", csv::text(loss));
    std::fwrite(line.data(), 1, line.size(), file_.get());
}

void LossLog::flush() {
    if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) {
        throw cannot_write(path_, errno);
    }
}

}  // namespace joulemark::train
