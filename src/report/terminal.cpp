// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace joulemark::report {
namespace {

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool looks_numeric(std::string_view cell) {
    return cell.empty() || cell == "-" || std::string_view("0123456789+-.").find(cell.front()) != std::string_view::npos;
}

std::string scaled(double value, double unit, std::string_view name) {
    return fmt::format("{} {}", number_text(value / unit), name);
}

}  // namespace

void Table::add(std::vector<std::string> row) {
    row.resize(header_.size());
    rows_.push_back(std::move(row));
}

std::string Table::text() const {
    std::vector<std::size_t> width(header_.size());
    std::vector<bool> right(header_.size(), !rows_.empty());
    for (std::size_t column = 0; column < header_.size(); ++column) {
        width[column] = characters(header_[column]);
        for (const auto& row : rows_) {
            width[column] = std::max(width[column], characters(row[column]));
            right[column] = right[column] && looks_numeric(row[column]);
        }
    }
    std::string text;
    const auto line = [&](const std::vector<std::string>& cells) {
        std::string out;
        for (std::size_t column = 0; column < cells.size(); ++column) {
            const std::string pad(width[column] - characters(cells[column]), ' ');
            out += (column == 0 ? "" : "  ") + (right[column] ? pad + cells[column] : cells[column] + pad);
        }
        out.erase(out.find_last_not_of(' ') + 1);
        text += out + '\n';
    };
    line(header_);
    std::size_t total = header_.empty() ? 0 : 2 * (header_.size() - 1);
    for (const std::size_t w : width) {
        total += w;
    }
    text += std::string(total, '-') + '\n';
    for (const auto& row : rows_) {
        line(row);
    }
    return text;
}

std::string sparkline(std::span<const double> values, std::size_t width) {
    static constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    width = std::min(width, values.size());
    std::vector<double> means(width, std::nan(""));
    for (std::size_t cell = 0; cell < width; ++cell) {
        double sum = 0;
        int count = 0;
        for (std::size_t i = cell * values.size() / width; i < (cell + 1) * values.size() / width; ++i) {
            if (!std::isnan(values[i])) {
                sum += values[i];
                ++count;
            }
        }
        if (count > 0) {
            means[cell] = sum / count;
        }
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (const double mean : means) {
        if (!std::isnan(mean)) {
            low = std::min(low, mean);
            high = std::max(high, mean);
        }
    }
    std::string line;
    for (const double mean : means) {
        if (std::isnan(mean)) {
            line += ' ';
        } else {
            const double level = high > low ? (mean - low) / (high - low) : 0.5;
            line += blocks[std::min(7, static_cast<int>(level * 8))];
        }
    }
    return line;
}

std::string number_text(double value) {
    if (std::isnan(value)) {
        return "-";
    }
    const double magnitude = std::abs(value);
    if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e7)) {
        return fmt::format("{:.3e}", value);
    }
    const int whole_digits = magnitude < 1 ? 1 : 1 + static_cast<int>(std::floor(std::log10(magnitude)));
    return fmt::format("{:.{}f}", value, std::max(0, 4 - whole_digits));
}

std::string level_text(double value) {
    return std::isnan(value)                                        ? "-"
           : value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                    : fmt::format("{:.6g}", value);
}

namespace {

int leading_digit(double number) {
    return number == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(number))));
}

/// Magnitudes that are written with an exponent.
bool extraordinary(double value) {
    return value != 0 && (leading_digit(value) < -3 || leading_digit(value) >= 7);
}

int decimals_of(double value, double half_width) {
    const int most = std::max(0, 4 - leading_digit(value));
    return half_width > 0 ? std::clamp(1 - leading_digit(half_width), 0, most) : std::min(most, 3);
}

}  // namespace

std::string rounded_text(double number, double value, double half_width) {
    return extraordinary(value) || !std::isfinite(number) || !std::isfinite(half_width)
               ? number_text(number)
               : fmt::format("{:.{}f}", number, decimals_of(value, half_width));
}

std::string plus_minus_text(double value, double half_width) {
    if (!std::isfinite(value) || !std::isfinite(half_width)) {
        return fmt::format("{} ± {}", number_text(value), number_text(half_width));
    }
    if (extraordinary(value)) {
        const int exponent = leading_digit(value);
        const double unit = std::pow(10.0, exponent);
        return fmt::format("({})e{:+03d}", plus_minus_text(value / unit, half_width / unit), exponent);
    }
    const int decimals = decimals_of(value, half_width);
    const double last = std::pow(10.0, -decimals);
    return half_width > 0 && half_width < last / 2
               ? fmt::format("{:.{}f} ± <{:.{}f}", value, decimals, last, decimals)
               : fmt::format("{:.{}f} ± {:.{}f}", value, decimals, half_width, decimals);
}

namespace {

struct EnergyUnit {
    double joules;
    const char* name;
};

EnergyUnit unit_for(double joules) {
    const double magnitude = std::abs(joules);
    return magnitude >= 3.6e6                    ? EnergyUnit{3.6e6, "kWh"}
           : magnitude >= 3600                   ? EnergyUnit{3600, "Wh"}
           : magnitude >= 1 || magnitude == 0 ? EnergyUnit{1, "J"}
                                                 : EnergyUnit{1e-3, "mJ"};
}

}  // namespace

std::string energy_text(double joules) {
    const EnergyUnit unit = unit_for(joules);
    return std::isnan(joules) ? "-" : scaled(joules, unit.joules, unit.name);
}

std::string energy_text(double joules, double bound_j) {
    if (std::isnan(joules) || std::isnan(bound_j)) {
        return energy_text(joules);
    }
    const EnergyUnit unit = unit_for(joules);
    return fmt::format("{} {}", plus_minus_text(joules / unit.joules, bound_j / unit.joules), unit.name);
}

std::string duration_text(double seconds) {
    if (std::isnan(seconds)) {
        return "-";
    }
    if (seconds < 1) {
        return scaled(seconds, 1e-3, "ms");
    }
    if (seconds < 120) {
        return scaled(seconds, 1, "s");
    }
    const auto minutes = static_cast<long long>(seconds / 60);
    if (minutes < 120) {
        return fmt::format("{} min {:02} s", minutes, static_cast<long long>(seconds) % 60);
    }
    if (minutes < 48 * 60) {
        return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
    }
    return fmt::format("{} d {:02} h", minutes / 1440, minutes / 60 % 24);
}

bool wants_colour(std::FILE* stream) {
    const char* term = std::getenv("TERM");
    return isatty(fileno(stream)) != 0 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
           std::string_view(term) != "dumb";
}

}  // namespace joulemark::report
