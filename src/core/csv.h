// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::csv {

/// One record per RFC 4180, without line breaks inside fields. Quotes removed, doubled quotes undone.
/// Fields are appended to `fields` after clearing it, so that a caller can reuse the allocation.
void split(std::string_view line, std::vector<std::string>& fields, char separator = ',');

/// Quotes a field only where it has to be; line breaks inside become spaces.
std::string quote(std::string_view field);

/// The whole field as a number, or nothing: no locale, no trailing text. Accepts nan and inf.
std::optional<double> number(std::string_view field);
std::optional<std::int64_t> integer(std::string_view field);

/// Shortest text that reads back as the same double; "" for NaN (a gap).
std::string text(double value);

/// Iterates over complete lines of a file that may still be growing: a last line without '\n' (a torn
/// write) is not returned. Reads in blocks; lines of any length.
class LineReader {
  public:
    /// Throws bad_input when the file cannot be opened.
    explicit LineReader(const std::string& path);
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// The next complete line without its end ("\n" or "\r\n"), valid until the next call; false at the end.
    bool next(std::string_view& line);
    /// As `next`, but gives a last line without '\n' too: for files that another tool finished writing.
    bool next_or_rest(std::string_view& line);
    /// Number of the line last returned, from 1.
    std::size_t line_number() const { return line_number_; }

  private:
    bool fill();
    int fd_;
    std::string path_;
    std::string buffer_;
    std::size_t begin_ = 0;
    bool end_of_file_ = false;
    std::size_t line_number_ = 0;
};

}  // namespace joulemark::csv
