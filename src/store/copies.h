// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "store/model.h"

/// Folders that somebody copied: the same recording under two names is one measurement.
namespace joulemark::store {

/// Run, host, boot and start as run.json has them, whatever its folders are called; "" where it does not say.
std::string origin_of(const HostRecord& host);

/// Leaves each host in the record once, with a warning `copied_host` where one was there twice. The one that
/// stays is the one whose folder still has its host's name, else the first.
void drop_copied_hosts(RunRecord& record);

}  // namespace joulemark::store
