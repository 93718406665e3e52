// SPDX-License-Identifier: Apache-2.0
#include "analysis/load_metrics.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <string>
#include <thread>

#include "analysis/metrics.h"
#include "store/load.h"

namespace joulemark::analysis {

namespace {

/// Each has a page cache of its own, and a login node other users.
constexpr unsigned most_threads = 8;

}  // namespace

std::vector<RunMetrics> load_metrics(const store::Database& database) {
    const std::string path = database.path();
    const unsigned parts = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
    std::vector<std::future<std::vector<RunMetrics>>> shares;
    for (unsigned part = 0; part < parts; ++part) {
        shares.push_back(std::async(std::launch::async, [&path, part, parts] {
            const store::Database own(path);
            std::vector<RunMetrics> metrics;
            store::for_each_run(
                own, [&](const store::RunRecord& record) { metrics.push_back(run_metrics(record)); },
                {.number = part, .of = parts});
            return metrics;
        }));
    }
    std::vector<RunMetrics> all;
    for (auto& share : shares) {
        std::ranges::move(share.get(), std::back_inserter(all));
    }
    return all;
}

}  // namespace joulemark::analysis
