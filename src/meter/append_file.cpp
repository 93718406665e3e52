// SPDX-License-Identifier: Apache-2.0
#include "meter/append_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::meter {

AppendFile::AppendFile(std::filesystem::path path)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (!file_) {
        throw environment_error("cannot write {}: {}", path_.string(), std::strerror(errno));
    }
}

void AppendFile::append(std::string_view lines, std::uint64_t rows) {
    if (buffer_.size() + lines.size() > keep_at_most) {
        dropped_ += rows;
        return;
    }
    buffer_ += lines;
    // While the file cannot be written, trying on every line would only cost time: the next flush will.
    if (buffer_.size() >= write_at && error_ == 0) {
        flush();
    }
}

void AppendFile::flush() {
    std::size_t written = 0;
    error_ = 0;
    while (written < buffer_.size()) {
        const ssize_t got = write(file_.get(), buffer_.data() + written, buffer_.size() - written);
        if (got >= 0) {
            written += static_cast<std::size_t>(got);
        } else if (errno != EINTR) {
            error_ = errno;
            break;
        }
    }
    buffer_.erase(0, written);
}

std::uint64_t AppendFile::unwritten() const {
    return dropped_ + static_cast<std::uint64_t>(std::ranges::count(buffer_, '\n'));
}

}  // namespace joulemark::meter
