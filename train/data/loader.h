// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace joulemark::train {

/// The samples of one batch.
struct BatchPlan {
    std::uint64_t epoch = 0;
    std::vector<std::uint32_t> samples;
};
/// The batches in the order in which they are wanted; nothing after the last. Called by one thread at a time.
using Plan = std::function<std::optional<BatchPlan>()>;

/// What happens when a sample cannot be read: training takes the next good one of the data set, so that
/// batches stay full and ranks in step; evaluation leaves it out.
enum class BadSamples { replace, leave_out };

/// Reads batches ahead on several threads. Threads share the samples of a batch, so that memory is bounded by
/// `prefetch` batches whatever their number, and the first batch is there soon. What a batch holds does not
/// depend on threads: samples are keyed by index and epoch, and replacements by index.
class Loader {
  public:
    struct Settings {
        int threads = 1;
        int prefetch = 2;  ///< batches being read or ready
        BadSamples bad_samples = BadSamples::replace;
        bool pin_memory = false;  ///< for asynchronous copies to a GPU
        /// Called once per unreadable sample, by the thread that met it, with the failure's sentence.
        std::function<void(const std::string&)> report = [](const std::string&) {};
    };
    Loader(const Dataset& dataset, Plan plan, Settings settings);
    ~Loader();

    /// The next batch, or nothing after the last. Throws what a thread threw; bad_input when no sample is
    /// readable. Called by one thread.
    std::optional<Batch> next();
    /// Whether `next` has a batch without waiting.
    bool ready() const;
    /// The samples that could not be read so far, in the order of their numbers.
    std::vector<std::uint32_t> damaged() const;

  private:
    struct Pending {
        BatchPlan plan;
        std::vector<Sample> samples;
        std::size_t taken = 0;
        std::size_t done = 0;
        std::optional<Batch> batch;
        std::exception_ptr failure;
    };
    struct Job {
        std::shared_ptr<Pending> pending;
        std::size_t slot = 0;
    };
    std::optional<Job> take(std::unique_lock<std::mutex>& lock);
    std::optional<Job> try_take();
    void work();
    void stop();
    Sample load(std::uint32_t index, std::uint64_t epoch);
    void report_bad(std::uint32_t index, const Failure& failure);

    const Dataset& dataset_;
    Plan plan_;
    Settings settings_;
    mutable std::mutex mutex_;
    // A thread is woken when there is something for it to do, not whenever something has changed: what trains
    // may be short of cores.
    std::condition_variable work_;   ///< a sample to read, or room for a batch
    std::condition_variable ready_;  ///< the first batch is complete, or there are no more
    std::deque<std::shared_ptr<Pending>> pending_;
    std::set<std::uint32_t> damaged_;
    bool plan_ended_ = false;
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace joulemark::train
