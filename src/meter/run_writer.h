// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "meter/append_file.h"
#include "meter/message.h"
#include "meter/row_ring.h"
#include "meter/totals.h"
#include "sensors/source.h"

namespace joulemark::meter {

class RunWriter;

/// Where one sampling thread leaves its rows. Nothing here allocates, logs or does I/O.
class RowChannel {
  public:
    /// One thread at a time. Where time is simulated, waits for room: the clock waits too. On the real clock
    /// a row that finds no room is lost, and counted.
    void push(const Row& row);

  private:
    friend RunWriter;
    RowChannel(RunWriter& writer, std::size_t capacity) : writer_(writer), ring_(capacity) {}
    RunWriter& writer_;
    RowRing ring_;
    std::atomic<std::uint64_t> lost_{0};
};

/// Writes one host's folder of a run (docs/schema.md). A thread of its own turns rows into lines and hands
/// them to the kernel at least once a second; a write that fails is said once and tried again, and never
/// reaches the sampling threads or the metered command.
class RunWriter {
  public:
    /// Makes the folder and run.json, then the tables. Throws environment_error, also when the folder has a
    /// run.json.
    RunWriter(std::filesystem::path folder, const nlohmann::json& run,
              const std::vector<std::unique_ptr<sensors::Source>>& sources, Totals& totals, bool simulated);
    /// Writes what is left.
    ~RunWriter();
    RunWriter(const RunWriter&) = delete;
    RunWriter& operator=(const RunWriter&) = delete;

    /// A channel for about `capacity` rows. Before sampling starts.
    RowChannel& channel(std::size_t capacity);

    /// Any thread. The index must be set on edges.
    void message(const Message& message, std::int64_t time_ns);

    /// Writes everything handed over so far and ends the thread; the totals are complete then.
    void stop();

    struct Counts {
        std::uint64_t rows = 0, lost = 0;
    };
    Counts counts() const;  ///< after `stop`

    /// end.json, after `stop`. False when it could not be written (a sentence in `warnings`).
    bool write_end(const nlohmann::json& end);

    /// Sentences for the user and for end.json, after `stop`.
    const std::vector<std::string>& warnings() const { return warnings_; }
    const std::filesystem::path& folder() const { return folder_; }

  private:
    friend RowChannel;

    /// One of gpu.csv, cpu.csv and node.csv.
    struct SampleFile {
        std::optional<AppendFile> file;
        std::vector<sensors::Metric> columns;
    };
    /// How a source's values go into its file's columns.
    struct Layout {
        std::size_t file = 0;
        std::string device;
        std::vector<int> value_of_column = {};  ///< -1: not of this source
        std::vector<bool> flags = {};           ///< of the columns: written as whole numbers
    };

    void wake();
    void loop(const std::stop_token& stop);
    void pass();
    void write_row(const Row& row);
    void report_failure(const AppendFile& file);

    const std::filesystem::path folder_;
    Totals& totals_;
    const bool simulated_;
    std::array<SampleFile, 3> sample_files_;
    std::optional<AppendFile> regions_;
    std::vector<Layout> layouts_;
    std::vector<std::unique_ptr<RowChannel>> channels_;
    std::string line_;
    std::uint64_t rows_ = 0;
    bool failure_reported_ = false;
    std::vector<std::string> warnings_;

    std::mutex mutex_;  ///< guards messages_ and woken_
    std::condition_variable_any work_;
    std::vector<std::pair<Message, std::int64_t>> messages_;
    std::atomic<bool> woken_{false};
    std::jthread thread_;
};

}  // namespace joulemark::meter
