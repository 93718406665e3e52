// SPDX-License-Identifier: Apache-2.0
#include "study/ledger.h"

#include <fmt/format.h>

#include "core/units.h"
#include "report/terminal.h"
#include "study/expectation.h"

namespace joulemark::study {

std::string text(const Used& used) {
    return (used.is_total ? "" : "at least ") + report::energy_text(used.energy_j) +
           (used.simulated ? " (simulated)" : "");
}

std::string configuration_key(const PlannedRun& run) {
    return run.factors.json().dump();
}

void Ledger::Sum::add(std::optional<double> value) {
    total += value.value_or(0);
    count += value ? 1 : 0;
}

void Ledger::add(const PlannedRun& run, std::optional<Used> used, std::optional<double> wall_s,
                 std::optional<double> disk_bytes) {
    note(used);
    for (Sums* sums : {&all_, &by_configuration_[configuration_key(run)]}) {
        sums->energy_j.add(used ? std::optional(used->energy_j) : std::nullopt);
        sums->wall_s.add(wall_s);
        sums->disk_bytes.add(disk_bytes);
    }
}

void Ledger::spend(std::optional<Used> used) {
    spent_j_ += used.value_or(Used{}).energy_j;
    note(used);
}

void Ledger::note(const std::optional<Used>& used) {
    is_total_ = is_total_ && used.value_or(Used{}).is_total;
    simulated_ = simulated_ || used.value_or(Used{}).simulated;
}

std::optional<Ledger::Estimate> Ledger::estimate(const PlannedRun& run) const {
    const auto same = by_configuration_.find(configuration_key(run));
    if (same != by_configuration_.end() && same->second.energy_j.count > 0) {
        const Sum& energy = same->second.energy_j;
        return Estimate{energy.mean(), fmt::format("the mean of {} finished repeats", energy.count)};
    }
    const Expected expected = expect(run);
    if (expected.energy_kwh && !expected.energy_is_bound) {
        return Estimate{expected.energy_kwh->high * joules_per_kwh, expected.energy_source};
    }
    if (all_.energy_j.count > 0) {
        return Estimate{
            all_.energy_j.mean(),
            fmt::format("the mean of {} finished runs of other configurations", all_.energy_j.count)};
    }
    return std::nullopt;
}

std::optional<double> Ledger::mean(const PlannedRun& run, Sum Sums::*of) const {
    const auto same = by_configuration_.find(configuration_key(run));
    const Sum& sum = same != by_configuration_.end() && (same->second.*of).count > 0 ? same->second.*of : all_.*of;
    return sum.count > 0 ? std::optional(sum.mean()) : std::nullopt;
}

std::optional<double> Ledger::wall_s(const PlannedRun& run) const {
    return mean(run, &Sums::wall_s);
}

std::optional<double> Ledger::disk_bytes(const PlannedRun& run) const {
    return mean(run, &Sums::disk_bytes);
}

}  // namespace joulemark::study
