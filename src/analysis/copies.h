// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/model.h"
#include "store/model.h"

/// Folders that somebody copied: the same recording under two names is one measurement, not a repeat.
namespace joulemark::analysis {

/// Run, host, boot and start as run.json has them, whatever its folders are called; "" where it does not say.
std::string origin_of(const store::HostRecord& host);

/// The record with each of its hosts once; nothing when no host is there twice.
std::optional<store::RunRecord> without_copied_hosts(const store::RunRecord& record);

/// Gives all but one of the runs with a common recording the status "copy". The one that keeps its status is
/// the one whose folder still has its name, else the first.
void mark_copied_runs(std::vector<RunMetrics>& runs);

}  // namespace joulemark::analysis
