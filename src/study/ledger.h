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
    bool simulated = false;
};

/// "3500 J", "at least 3500 J (simulated)".
std::string text(const Used& used);

/// What finished runs took, and from that what the next one will.
class Ledger {
  public:
    /// What is known of them; wall seconds are those of the machine, also for simulated runs.
    void add(const PlannedRun& run, std::optional<Used> used, std::optional<double> wall_s,
             std::optional<double> disk_bytes = {});

    /// Energy of a failed attempt: used, but no measure of its configuration.
    void spend(std::optional<Used> used);

    Used used() const { return {all_.energy_j.total + spent_j_, is_total_, simulated_}; }
    bool has_energy() const { return all_.energy_j.count > 0; }
    double disk_bytes() const { return all_.disk_bytes.total; }

    struct Estimate {
        double energy_j = 0;
        std::string source;
    };
    /// From finished repeats of the configuration, else what the study file expects, else the mean of all
    /// runs.
    std::optional<Estimate> estimate(const PlannedRun& run) const;
    /// Means: of repeats of the configuration, else of all runs.
    std::optional<double> wall_s(const PlannedRun& run) const;
    std::optional<double> disk_bytes(const PlannedRun& run) const;

  private:
    struct Sum {
        double total = 0;
        int count = 0;
        void add(std::optional<double> value);
        double mean() const { return total / count; }
    };
    struct Sums {
        Sum energy_j, wall_s, disk_bytes;
    };
    std::optional<double> mean(const PlannedRun& run, Sum Sums::*of) const;
    void note(const std::optional<Used>& used);

    Sums all_;
    double spent_j_ = 0;
    bool is_total_ = true, simulated_ = false;
    std::map<std::string, Sums> by_configuration_;
};

/// Names a run's configuration, whatever its repeat.
std::string configuration_key(const PlannedRun& run);

}  // namespace joulemark::study
