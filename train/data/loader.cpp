// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace joulemark::train {

Batch Batch::to(torch::Device device) const {
    Batch moved = *this;
    for (torch::Tensor& input : moved.inputs) {
        input = input.to(device, /*non_blocking=*/true);
    }
    if (moved.target.defined()) {
        moved.target = moved.target.to(device, /*non_blocking=*/true);
    }
    return moved;
}

Loader::Loader(const Dataset& dataset, Plan plan, Settings settings)
    : dataset_(dataset), plan_(std::move(plan)), settings_(std::move(settings)) {
    try {
        for (int i = 0; i < settings_.threads; ++i) {
            threads_.emplace_back([this] { work(); });
        }
    } catch (const std::system_error& error) {
        const std::size_t started = threads_.size();
        stop();  // those that run wait for work, and no destructor follows
        throw environment_error("only {} of {} loader threads can be started ({}): lower --loader-threads",
                                started, settings_.threads, error.code().message());
    }
}

Loader::~Loader() {
    stop();
}

void Loader::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    work_.notify_all();
    threads_.clear();
}

std::optional<Batch> Loader::next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] {
        return pending_.empty() ? plan_ended_
                                : pending_.front()->batch.has_value() || pending_.front()->failure;
    });
    if (pending_.empty()) {
        return std::nullopt;
    }
    const auto front = pending_.front();
    if (front->failure) {
        std::rethrow_exception(front->failure);
    }
    pending_.pop_front();
    lock.unlock();
    work_.notify_one();
    return std::move(front->batch);
}

bool Loader::ready() const {
    const std::lock_guard lock(mutex_);
    return !pending_.empty() && pending_.front()->batch.has_value();
}

std::vector<std::uint32_t> Loader::damaged() const {
    const std::lock_guard lock(mutex_);
    return {damaged_.begin(), damaged_.end()};
}

/// An unread sample of the last batch; begins a new batch when it has none and there is room.
std::optional<Loader::Job> Loader::try_take() {
    if (pending_.empty() || pending_.back()->taken == pending_.back()->plan.samples.size()) {
        if (plan_ended_ || pending_.size() >= static_cast<std::size_t>(settings_.prefetch)) {
            return std::nullopt;
        }
        auto pending = std::make_shared<Pending>();
        std::optional<BatchPlan> plan;
        try {
            plan = plan_();
        } catch (...) {  // an order of many samples needs memory
            pending->failure = std::current_exception();
            pending_.push_back(pending);
        }
        if (!plan) {
            plan_ended_ = true;
            work_.notify_all();
            ready_.notify_one();
            return std::nullopt;
        }
        pending->plan = std::move(*plan);
        pending->samples.resize(pending->plan.samples.size());
        pending_.push_back(std::move(pending));
    }
    const auto& last = pending_.back();
    Job job{last, last->taken++};
    if (last->taken < last->plan.samples.size()) {
        work_.notify_one();  // who in turn wakes the next: cheap samples are read before many are awake
    }
    return job;
}

std::optional<Loader::Job> Loader::take(std::unique_lock<std::mutex>& lock) {
    std::optional<Job> job;
    work_.wait(lock, [&] { return stopping_ || (job = try_take()) || plan_ended_; });
    return stopping_ ? std::nullopt : job;
}

void Loader::work() {
    std::unique_lock lock(mutex_);
    while (auto job = take(lock)) {
        Pending& pending = *job->pending;
        lock.unlock();
        Sample sample;
        std::optional<Batch> batch;
        std::exception_ptr failure;
        try {
            sample = load(pending.plan.samples[job->slot], pending.plan.epoch);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        pending.samples[job->slot] = std::move(sample);
        if (++pending.done == pending.samples.size() && !failure && !pending.failure) {
            lock.unlock();
            try {
                std::erase_if(pending.samples, [](const Sample& left_out) { return left_out.empty(); });
                batch = pending.samples.empty() ? Batch()
                                                : dataset_.collate(pending.samples, settings_.pin_memory);
                pending.samples.clear();
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
        }
        if (failure) {
            pending.failure = failure;
        }
        if (batch) {
            pending.batch = std::move(batch);
        }
        if (pending.failure || pending.batch) {
            ready_.notify_one();
        }
    }
}

Sample Loader::load(std::uint32_t index, std::uint64_t epoch) {
    const std::uint32_t size = dataset_.size();
    for (std::uint32_t attempt = 0; attempt < size; ++attempt) {
        const std::uint32_t candidate = (index + attempt) % size;
        auto sample = dataset_.load(candidate, epoch);
        if (sample) {
            return std::move(*sample);
        }
        report_bad(candidate, sample.failure());
        if (settings_.bad_samples == BadSamples::leave_out) {
            return {};
        }
    }
    throw bad_input("none of the {} samples of {} can be read", size, dataset_.name());
}

void Loader::report_bad(std::uint32_t index, const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (damaged_.insert(index).second) {
        settings_.report(failure.reason);
    }
}

}  // namespace joulemark::train
