// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/rank_environment.h"
#include "meter/child.h"
#include "meter/election.h"
#include "meter/run.h"
#include "meter/run_writer.h"
#include "meter/sampler.h"
#include "sensors/catalog.h"

namespace joulemark::meter {

/// What run.json and end.json hold (docs/schema.md).

struct RunIdentity {
    std::string run = {}, name = {};
    launch::RankEnvironment ranks = {};
    std::vector<std::string> expected_hosts = {};
};

/// Names what was started together: a Slurm step, or one mpirun. Equal on all its ranks, and on no others.
std::string step_name(const launch::RankEnvironment& ranks, const launch::Lookup& lookup);

/// The run's id, name and hosts: equal for all ranks and nodes of one job step. Throws bad_input for an id
/// that is no file name.
RunIdentity identify(const RunOptions& options, const launch::RankEnvironment& ranks,
                     const launch::Lookup& lookup);

nlohmann::json run_document(const RunOptions& options, const RunIdentity& identity,
                            const sensors::Machine& machine, double energy_rate_hz,
                            const nlohmann::json& controls);

/// What this process itself cost.
struct OwnCost {
    double cpu_s = 0;
    std::int64_t max_rss_bytes = 0;
};
OwnCost own_cost();

/// What programs told, or tried to, and is not in regions.csv.
struct MarkCounts {
    std::uint64_t refused = 0;  ///< arrived, and were no messages
    std::uint64_t lost = 0;     ///< did not get through, as their senders tell
};

/// What is known when a run has ended.
struct RunEnd {
    std::int64_t end_ns = 0;  ///< of the command
    ChildEnd command = {};
    std::vector<Election::Sampler::End> failed_ranks = {};  ///< others of the node, whose commands failed
    OwnCost cost = {};
    std::optional<Sampler::Statistics> statistics = {};  ///< absent: a sensor did not return
    RunWriter::Counts rows = {};
    MarkCounts marks = {};
    std::vector<std::string> warnings = {};
};
nlohmann::json end_document(const RunEnd& end, const sensors::Machine& machine);

}  // namespace joulemark::meter
