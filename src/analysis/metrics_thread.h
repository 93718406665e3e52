// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "analysis/metrics.h"

namespace joulemark::analysis {

/// Works out run_metrics on a thread of its own, so that the next record is read meanwhile. A bounded number
/// of records waits, so memory does not grow with the study.
class MetricsThread {
  public:
    MetricsThread();
    /// Waits while the queue is full. Throws what the thread met.
    void add(store::RunRecord&& record);
    /// The metrics of all records, in the order they were added. Throws what the thread met.
    std::vector<RunMetrics> finish();

  private:
    static constexpr std::size_t most_waiting = 16;

    void work(std::stop_token stop);

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::queue<store::RunRecord> waiting_;
    bool complete_ = false;
    std::exception_ptr failure_;
    std::vector<RunMetrics> metrics_;
    std::jthread thread_;  // last: it uses the others
};

}  // namespace joulemark::analysis
