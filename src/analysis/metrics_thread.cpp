// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics_thread.h"

#include <utility>

namespace joulemark::analysis {

MetricsThread::MetricsThread() : thread_([this](std::stop_token stop) { work(std::move(stop)); }) {}

void MetricsThread::add(store::RunRecord&& record) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < most_waiting || failure_; });
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    waiting_.push(std::move(record));
    changed_.notify_all();
}

std::vector<RunMetrics> MetricsThread::finish() {
    {
        const std::lock_guard lock(mutex_);
        complete_ = true;
        changed_.notify_all();
    }
    thread_.join();
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    return std::move(metrics_);
}

void MetricsThread::work(std::stop_token stop) {
    try {
        while (true) {
            std::unique_lock lock(mutex_);
            const auto ready = [this] { return !waiting_.empty() || complete_; };
            if (!changed_.wait(lock, stop, ready) || waiting_.empty()) {
                return;
            }
            const store::RunRecord record = std::move(waiting_.front());
            waiting_.pop();
            changed_.notify_all();
            lock.unlock();
            metrics_.push_back(run_metrics(record));
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
    }
}

}  // namespace joulemark::analysis
