// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::report {

/// A plain text table: columns as wide as their widest cell (in characters, not bytes), two spaces apart,
/// a rule under the header. Numeric-looking columns are right-aligned.
class Table {
  public:
    explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
    void add(std::vector<std::string> row);
    bool empty() const { return rows_.empty(); }
    std::string text() const;

  private:
    std::vector<std::string> header_;
    std::vector<std::vector<std::string>> rows_;
};

/// `values` in at most `width` block characters, scaled from their minimum to their maximum; NaN is a blank.
std::string sparkline(std::span<const double> values, std::size_t width);

/// Short forms for people: "1.24 kJ", "0.31 kWh", "12.3 s", "2 h 05 min". "-" for NaN.
std::string energy_text(double joules);
/// "894.68 ± 0.56 Wh"; without "±" where the bound is NaN.
std::string energy_text(double joules, double bound_j);
std::string duration_text(double seconds);
/// Four significant digits, no exponent for ordinary magnitudes. "-" for NaN.
std::string number_text(double value);
/// Levels and counts, with as few digits as tell them apart: "250", "0.5".
std::string level_text(double value);
/// `number` as one of several that are rounded alike: where `half_width` has two digits, `value` five at most.
std::string rounded_text(double number, double value, double half_width);
/// "782.4 ± 4.9": both rounded where the half-width has two digits, the value to five decimal digits at most.
std::string plus_minus_text(double value, double half_width);

/// Whether `stream` is a terminal that wants colour (NO_COLOR and TERM=dumb honoured).
bool wants_colour(std::FILE* stream);

}  // namespace joulemark::report
