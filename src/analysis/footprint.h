// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Carbon intensity of electricity in gCO2e per kWh: one number, or a time series.
class CarbonIntensity {
  public:
    /// "380", or the name of a CSV file `time,g_per_kwh` whose times are seconds since 1970 or
    /// 2024-05-01T13:00[:00]Z; each value holds until the next. Throws bad_input with the line.
    static CarbonIntensity parse(const std::string& text);

    /// Mean over a window of wall-clock nanoseconds; nothing where the series does not cover it.
    std::optional<double> mean(std::int64_t start_ns, std::int64_t end_ns) const;
    bool constant() const { return series_.size() == 1; }

  private:
    std::vector<std::pair<std::int64_t, double>> series_;  ///< from when, value; one entry holds for ever
};

/// Sets `co2e_g` and `cost` of every run whose energy is known: measured energy x intensity (mean over the
/// run's time, power taken as even) and x price per kWh. What was not measured is not in either.
void add_footprint(std::vector<RunMetrics>& runs, const std::optional<CarbonIntensity>& intensity,
                   std::optional<double> price_per_kwh);

}  // namespace joulemark::analysis
