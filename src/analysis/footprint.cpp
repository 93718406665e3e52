// SPDX-License-Identifier: Apache-2.0
#include "analysis/footprint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/units.h"

namespace joulemark::analysis {
namespace {

std::optional<std::int64_t> time_of(const std::string& text) {
    if (const auto unix_seconds = csv::number(text)) {
        return nanoseconds(*unix_seconds);
    }
    std::tm time{};
    char zone = 0;
    const int got = std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d%c", &time.tm_year, &time.tm_mon,
                                &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &zone);
    if (got < 5 || !text.ends_with('Z')) {
        return std::nullopt;
    }
    time.tm_year -= 1900;
    time.tm_mon -= 1;
    return std::int64_t{timegm(&time)} * ns_per_s;
}

bool is_amount(double value) {
    return std::isfinite(value) && value >= 0;
}

}  // namespace

CarbonIntensity CarbonIntensity::parse(const std::string& text) {
    CarbonIntensity intensity;
    if (const auto value = csv::number(text)) {
        if (!is_amount(*value)) {
            throw bad_input("--carbon {}: an intensity is a number from 0 up", text);
        }
        intensity.series_ = {{0, *value}};
        return intensity;
    }
    csv::LineReader lines(text);
    std::string_view line;
    std::vector<std::string> cells;
    lines.next_or_rest(line);  // the names
    while (lines.next_or_rest(line)) {
        csv::split(line, cells);
        const auto time = cells.size() == 2 ? time_of(cells[0]) : std::nullopt;
        const auto value = cells.size() == 2 ? csv::number(cells[1]) : std::nullopt;
        if (!time || !value || !is_amount(*value)) {
            throw bad_input(
                "{} line {} is not time,g_per_kwh with a time as 2024-05-01T13:00Z or seconds since 1970",
                text, lines.line_number());
        }
        intensity.series_.emplace_back(*time, *value);
    }
    if (intensity.series_.size() < 2) {
        throw bad_input("{} holds fewer than two values; for one give --carbon NUMBER", text);
    }
    std::ranges::sort(intensity.series_);
    return intensity;
}

std::optional<double> CarbonIntensity::mean(std::int64_t start_ns, std::int64_t end_ns) const {
    if (constant()) {
        return series_.front().second;
    }
    // The last value holds as long as the one before it did.
    const std::size_t n = series_.size();
    const std::int64_t last = series_[n - 1].first + (series_[n - 1].first - series_[n - 2].first);
    if (start_ns < series_.front().first || end_ns > last || end_ns <= start_ns) {
        return std::nullopt;
    }
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t from = std::max(start_ns, series_[i].first);
        const std::int64_t to = std::min(end_ns, i + 1 < n ? series_[i + 1].first : last);
        sum += series_[i].second * seconds(std::max<std::int64_t>(0, to - from));
    }
    return sum / seconds(end_ns - start_ns);
}

void add_footprint(std::vector<RunMetrics>& runs, const std::optional<CarbonIntensity>& intensity,
                   std::optional<double> price_per_kwh) {
    if (price_per_kwh && !is_amount(*price_per_kwh)) {
        throw bad_input("--price {}: a price is a number from 0 up", *price_per_kwh);
    }
    for (RunMetrics& run : runs) {
        if (!run.energy_j || run.energy_uncertain) {
            continue;
        }
        if (price_per_kwh) {
            run.cost = kwh(*run.energy_j) * *price_per_kwh;
        }
        if (!intensity || (!intensity->constant() && !run.start_realtime_ns)) {
            continue;
        }
        const std::int64_t start = run.start_realtime_ns.value_or(0);
        if (const auto grams = intensity->mean(start, start + nanoseconds(run.wall_time_s.value_or(0)))) {
            run.co2e_g = kwh(*run.energy_j) * *grams;
        } else {
            run.warnings.push_back(
                {"no_carbon_intensity", "the time series of carbon intensity does not cover the run"});
        }
    }
}

}  // namespace joulemark::analysis
