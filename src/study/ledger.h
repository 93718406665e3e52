// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "study/design.h"

namespace joulemark::study {

/// Energy of a run, so far as it was measured.
struct Used {
    double energy_j = 0;
    bool is_total = true;  ///< else it used at least that
};

/// "3500 J", "at least 3500 J".
std::string text(const Used& used);

/// What finished runs took, and from that what the next one will.
class Ledger {
  public:
    /// Where known; wall seconds are those of the machine, also for simulated runs.
    void add(const PlannedRun& run, std::optional<Used> used, std::optional<double> wall_s);

    /// Energy of a failed attempt: used, but no measure of its configuration.
    void spend(std::optional<Used> used) { spent_.add(used, std::nullopt); }

    Used used() const { return {all_.energy_j + spent_.energy_j, all_.is_total && spent_.is_total}; }
    bool has_energy() const { return all_.energies > 0; }

    struct Estimate {
        double energy_j = 0;
        std::string source;
    };
    /// From finished repeats of the configuration, else what the study file expects, else the mean of all
    /// runs.
    std::optional<Estimate> estimate(const PlannedRun& run) const;
    /// Mean wall seconds: of repeats of the configuration, else of all runs.
    std::optional<double> wall_s(const PlannedRun& run) const;

  private:
    struct Sum {
        double energy_j = 0, wall_s = 0;
        int energies = 0, walls = 0;
        bool is_total = true;
        void add(std::optional<Used> used, std::optional<double> wall);
    };
    Sum all_, spent_;
    std::map<std::string, Sum> by_configuration_;
};

/// Names a run's configuration, whatever its repeat.
std::string configuration_key(const PlannedRun& run);

}  // namespace joulemark::study
