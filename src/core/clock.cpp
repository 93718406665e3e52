// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "core/units.h"

namespace joulemark {
namespace {

std::int64_t read_clock(clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return static_cast<std::int64_t>(t.tv_sec) * ns_per_s + t.tv_nsec;
}

}  // namespace

std::int64_t MonotonicClock::now_ns() const { return read_clock(CLOCK_MONOTONIC); }

std::int64_t MonotonicClock::realtime_ns() const { return read_clock(CLOCK_REALTIME); }

bool MonotonicClock::sleep_until(std::int64_t deadline_ns, std::stop_token stop) {
    // steady_clock is CLOCK_MONOTONIC here, and glibc's wait takes it as an absolute deadline: no drift.
    // Both are kept per thread because the condition variable allocates, and samplers must not.
    thread_local std::mutex mutex;
    thread_local std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
    wake.wait_until(lock, stop, deadline, [] { return false; });
    return !stop.stop_requested();
}

}  // namespace joulemark
