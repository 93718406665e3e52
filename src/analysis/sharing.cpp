// SPDX-License-Identifier: Apache-2.0
#include "analysis/sharing.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

namespace joulemark::analysis {
namespace {

/// One run on one device, and how long another was there as well.
struct Stay {
    RunMetrics* run;
    const MeteredDevice* device;
    std::int64_t shared_ns = 0;
    std::int64_t counted_ns = INT64_MIN;  ///< until when it is in shared_ns
    std::int64_t longest_ns = 0;
    const RunMetrics* other = nullptr;  ///< with which it shared longest
};

/// Others come in the order of their start.
void meet(Stay& stay, const Stay& other, std::int64_t from_ns, std::int64_t until_ns) {
    stay.shared_ns += std::max<std::int64_t>(0, until_ns - std::max(from_ns, stay.counted_ns));
    stay.counted_ns = std::max(stay.counted_ns, until_ns);
    if (until_ns - from_ns > stay.longest_ns) {
        stay.longest_ns = until_ns - from_ns;
        stay.other = other.run;
    }
}

void find_meetings(std::vector<Stay>& stays) {
    std::ranges::sort(stays, {}, [](const Stay& stay) { return stay.device->start_ns; });
    std::vector<Stay*> present;
    for (Stay& stay : stays) {
        const std::int64_t from_ns = stay.device->start_ns;
        std::erase_if(present, [&](const Stay* earlier) { return earlier->device->end_ns <= from_ns; });
        for (Stay* earlier : present) {
            if (earlier->run == stay.run) {
                continue;
            }
            const std::int64_t until_ns = std::min(earlier->device->end_ns, stay.device->end_ns);
            meet(*earlier, stay, from_ns, until_ns);
            meet(stay, *earlier, from_ns, until_ns);
        }
        present.push_back(&stay);
    }
}

}  // namespace

void warn_of_shared_devices(std::vector<RunMetrics>& runs) {
    std::unordered_map<std::size_t, std::vector<Stay>> by_device;
    for (RunMetrics& run : runs) {
        for (const MeteredDevice& device : run.metered) {
            if (run.status != "copy") {
                by_device[device.identity].push_back({.run = &run, .device = &device});
            }
        }
    }
    std::map<RunMetrics*, const Stay*> worst;
    for (auto& [identity, stays] : by_device) {
        find_meetings(stays);
        for (const Stay& stay : stays) {
            if (stay.other == nullptr) {
                continue;
            }
            const Stay*& known = worst[stay.run];
            if (known == nullptr || stay.shared_ns > known->shared_ns ||
                (stay.shared_ns == known->shared_ns && stay.device < known->device)) {
                known = &stay;  // of equal ones the run's first
            }
        }
    }
    for (const auto& [run, stay] : worst) {
        run->warnings.push_back(
            {"device_shared",
             fmt::format("{} was metered by {} too, for {:.0f} % of the run's time: its energy is in that of "
                         "both; run one at a time",
                         stay->device->name, stay->other->run,
                         100.0 * static_cast<double>(stay->shared_ns) /
                             static_cast<double>(stay->device->end_ns - stay->device->start_ns))});
    }
}

}  // namespace joulemark::analysis
