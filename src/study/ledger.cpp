// SPDX-License-Identifier: Apache-2.0
#include "study/ledger.h"

#include <fmt/format.h>

#include "core/units.h"
#include "report/terminal.h"
#include "study/expectation.h"

namespace joulemark::study {

std::string text(const Used& used) {
    return (used.is_total ? "" : "at least ") + report::energy_text(used.energy_j);
}

std::string configuration_key(const PlannedRun& run) {
    return run.factors.json().dump();
}

void Ledger::Sum::add(std::optional<Used> used, std::optional<double> wall) {
    energy_j += used.value_or(Used{}).energy_j;
    energies += used ? 1 : 0;
    is_total = is_total && used.value_or(Used{}).is_total;
    wall_s += wall.value_or(0);
    walls += wall ? 1 : 0;
}

void Ledger::add(const PlannedRun& run, std::optional<Used> used, std::optional<double> wall_s) {
    all_.add(used, wall_s);
    by_configuration_[configuration_key(run)].add(used, wall_s);
}

std::optional<Ledger::Estimate> Ledger::estimate(const PlannedRun& run) const {
    const auto same = by_configuration_.find(configuration_key(run));
    if (same != by_configuration_.end() && same->second.energies > 0) {
        return Estimate{same->second.energy_j / same->second.energies,
                        fmt::format("the mean of {} finished repeats", same->second.energies)};
    }
    const Expected expected = expect(run);
    if (expected.energy_kwh && !expected.energy_is_bound) {
        return Estimate{expected.energy_kwh->high * joules_per_kwh, expected.energy_source};
    }
    if (all_.energies > 0) {
        return Estimate{all_.energy_j / all_.energies,
                        fmt::format("the mean of {} finished runs of other configurations", all_.energies)};
    }
    return std::nullopt;
}

std::optional<double> Ledger::wall_s(const PlannedRun& run) const {
    const auto same = by_configuration_.find(configuration_key(run));
    const Sum& sum = same != by_configuration_.end() && same->second.walls > 0 ? same->second : all_;
    return sum.walls > 0 ? std::optional(sum.wall_s / sum.walls) : std::nullopt;
}

}  // namespace joulemark::study
