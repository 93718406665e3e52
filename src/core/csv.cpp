// SPDX-License-Identifier: Apache-2.0
#include "core/csv.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace joulemark::csv {
namespace {

constexpr std::size_t block_bytes = 1 << 18;

template <typename T>
std::optional<T> parse(std::string_view field) {
    if (!field.empty() && field.front() == '+') {
        field.remove_prefix(1);
    }
    T value{};
    const auto [end, status] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (status != std::errc{} || end != field.data() + field.size()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

void split(std::string_view line, std::vector<std::string>& fields, char separator) {
    fields.clear();
    std::size_t at = 0;
    while (true) {
        std::string field;
        if (at < line.size() && line[at] == '"') {
            ++at;
            while (at < line.size()) {
                if (line[at] != '"') {
                    field += line[at++];
                } else if (at + 1 < line.size() && line[at + 1] == '"') {
                    field += '"';
                    at += 2;
                } else {
                    ++at;
                    break;
                }
            }
        }
        const std::size_t end = std::min(line.find(separator, at), line.size());
        field.append(line.substr(at, end - at));
        fields.push_back(std::move(field));
        if (end == line.size()) {
            return;
        }
        at = end + 1;
    }
}

std::string quote(std::string_view field) {
    if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
        return std::string(field);
    }
    std::string quoted = "\"";
    for (const char c : field) {
        if (c == '"') {
            quoted += "\"\"";
        } else {
            quoted += (c == '\n' || c == '\r') ? ' ' : c;
        }
    }
    return quoted + '"';
}

std::optional<double> number(std::string_view field) { return parse<double>(field); }

std::optional<std::int64_t> integer(std::string_view field) { return parse<std::int64_t>(field); }

std::string text(double value) {
    if (std::isnan(value)) {
        return "";
    }
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    return std::string(digits, end);
}

LineReader::LineReader(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path_(path) {
    if (fd_ < 0) {
        throw bad_input("cannot read {}: {}", path, std::strerror(errno));
    }
}

LineReader::~LineReader() { close(fd_); }

bool LineReader::fill() {
    if (end_of_file_) {
        return false;
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + block_bytes);
    ssize_t got = -1;
    do {
        got = read(fd_, buffer_.data() + kept, block_bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        throw bad_input("cannot read {}: {}", path_, std::strerror(errno));
    }
    buffer_.resize(kept + static_cast<std::size_t>(got));
    end_of_file_ = got == 0;
    return got > 0;
}

bool LineReader::next(std::string_view& line) {
    std::size_t searched = begin_;
    while (true) {
        const std::size_t end = buffer_.find('\n', searched);
        if (end != std::string::npos) {
            line = std::string_view(buffer_).substr(begin_, end - begin_);
            if (line.ends_with('\r')) {
                line.remove_suffix(1);
            }
            begin_ = end + 1;
            ++line_number_;
            return true;
        }
        const std::size_t pending = buffer_.size() - begin_;
        if (!fill()) {
            return false;
        }
        searched = pending;
    }
}

bool LineReader::next_or_rest(std::string_view& line) {
    if (next(line)) {
        return true;
    }
    if (begin_ == buffer_.size()) {
        return false;
    }
    line = std::string_view(buffer_).substr(begin_);
    if (line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    begin_ = buffer_.size();
    ++line_number_;
    return true;
}

}  // namespace joulemark::csv
