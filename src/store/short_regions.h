// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "meter/attribution.h"
#include "store/device_windows.h"
#include "store/model.h"

namespace joulemark::store {

/// Spans of the regions that are short enough for attribution, in order: near them the refreshes of counters
/// are kept.
std::vector<meter::RefreshLog::Span> short_spans(const std::vector<RegionRecord>& regions);

/// Replaces the energy of short regions by the attributed one, where `device` has a counter that was read
/// often enough. `number` is the device's place in each region's list. Adds what was pooled to the host's
/// attributions, or a warning with the reason why short regions of a GPU keep their coarse energy.
void attribute_short_regions(HostRecord& host, const DeviceWindows& device, std::size_t number);

}  // namespace joulemark::store
