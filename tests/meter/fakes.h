// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/csv.h"
#include "sensors/source.h"

namespace joulemark::meter {

/// A folder that goes away with the test.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string path = (std::filesystem::temp_directory_path() / "joulemark-test-XXXXXX").string();
        path_ = mkdtemp(path.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// Time that passes only in sleeps, for one sleeping thread, up to an end; who sleeps beyond waits to be stopped.
class FakeClock final : public Clock {
  public:
    explicit FakeClock(std::int64_t end_ns) : end_ns_(end_ns) {}
    std::int64_t now_ns() const override { return now_ns_.load(); }
    std::int64_t realtime_ns() const override { return now_ns_.load(); }
    bool sleep_until(std::int64_t deadline_ns, std::stop_token stop) override {
        if (deadline_ns > end_ns_) {
            reached_end_ = true;
            std::mutex mutex;
            std::condition_variable_any stopped;
            std::unique_lock lock(mutex);
            stopped.wait(lock, stop, [] { return false; });
        }
        if (stop.stop_requested()) {
            return false;
        }
        now_ns_ = std::max(now_ns_.load(), deadline_ns);
        return true;
    }
    void advance(std::int64_t ns) { now_ns_ += ns; }
    bool reached_end() const { return reached_end_; }

  private:
    const std::int64_t end_ns_;
    std::atomic<std::int64_t> now_ns_{0};
    std::atomic<bool> reached_end_{false};
};

/// A source that a test tells what to do.
class FakeSource final : public sensors::Source {
  public:
    using Read = std::function<void(std::span<double>)>;
    FakeSource(sensors::SourceInfo info, Read read) : Source(std::move(info)), read_(std::move(read)) {}
    void read(std::span<double> values) noexcept override { read_(values); }

  private:
    Read read_;
};

inline sensors::SourceInfo source_info(std::string name, std::string device, std::vector<sensors::Metric> metrics,
                                       bool slow = false) {
    sensors::SourceInfo info;
    info.name = std::move(name);
    info.device = std::move(device);
    info.metrics = std::move(metrics);
    info.method = slow ? "counter" : "sampled";
    info.slow = slow;
    return info;
}

inline sensors::Device device(std::string id, std::string component) {
    sensors::Device device{};
    device.file = component == "gpu" ? sensors::File::gpu : sensors::File::cpu;
    device.id = std::move(id);
    device.component = std::move(component);
    return device;
}

using Sources = std::vector<std::unique_ptr<sensors::Source>>;

/// All lines of a CSV file, split.
inline std::vector<std::vector<std::string>> table(const std::filesystem::path& path) {
    std::vector<std::vector<std::string>> rows;
    csv::LineReader reader(path);
    for (std::string_view line; reader.next(line);) {
        csv::split(line, rows.emplace_back());
    }
    return rows;
}

}  // namespace joulemark::meter
