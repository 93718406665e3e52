// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/child.h"
#include "meter/run_document.h"
#include "meter/run_writer.h"
#include "meter/sampler.h"
#include "meter/totals.h"
#include "sensors/catalog.h"

namespace joulemark::meter {

struct SummaryInput {
    std::string run;
    std::string folder;
    double command_s = 0;
    ChildEnd end;
    std::vector<Totals::Entry> energies;
    Totals::Epochs epochs;
    OwnCost cost;
    std::optional<Sampler::Statistics> statistics;
    RunWriter::Counts counts;
    std::vector<std::string> warnings;
};

/// Of devices whose readings do not cover the command.
std::vector<std::string> coverage_warnings(const std::vector<Totals::Entry>& energies, double command_s);

/// The few lines a person sees when the command has ended.
std::string summary(const SummaryInput& input, const sensors::Machine& machine);

}  // namespace joulemark::meter
