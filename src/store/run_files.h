// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/csv.h"
#include "sensors/metric.h"
#include "store/model.h"

namespace joulemark::store {

/// Reads what one host delivered (docs/schema.md). Nothing in a host's folder is an error: files may be
/// missing, still growing, torn by a crash or damaged; what could not be used is told in warnings.

/// A JSON file of a host. Absent when there is none, or when it is damaged (then a warning says so). Only
/// members of the kinds of `shape` (document_shape.h) are left in it; another warning names those taken out.
std::optional<nlohmann::json> read_json(const std::filesystem::path& file, const nlohmann::json& shape,
                                        std::vector<Warning>& warnings);

/// One row of gpu.csv, cpu.csv or node.csv.
struct SampleRow {
    std::int64_t time_ns = 0;  ///< when the read began
    std::int64_t read_ns = 0;  ///< how long it took; 0 where the file does not tell
    std::string_view device;
    /// One per SampleReader::metrics(); NaN where the field is empty.
    std::vector<double> values;
};

/// Streams a sample file. Columns it does not know are passed over.
class SampleReader {
  public:
    /// A row later than `latest_ns` is damage.
    SampleReader(const std::filesystem::path& path, sensors::File file, std::int64_t latest_ns);

    const std::vector<sensors::Metric>& metrics() const { return metrics_; }
    /// The next good row, valid until the next call; false at the end of what has been written so far.
    bool next(SampleRow& row);
    /// Lines seen after the header, good or not.
    std::size_t rows() const { return rows_; }
    /// Lines that are no samples, as one warning in words; nothing when there were none.
    std::optional<Warning> damage() const;

  private:
    bool parse(std::string_view line, SampleRow& row);

    std::filesystem::path path_;
    std::int64_t latest_ns_;
    std::optional<csv::LineReader> lines_;  ///< absent: no such file
    std::vector<sensors::Metric> metrics_;
    std::vector<int> roles_;  ///< per column: index into metrics_, or one of the negative roles
    std::vector<std::string_view> fields_;
    std::size_t rows_ = 0, skipped_ = 0, first_skipped_ = 0;
};

/// regions.csv, put together: the regions of the host by start, without metrics yet, and what the
/// program told about itself. A region without an `end` is open and has end_ns 0; one that was aborted is open
/// and has the time of that.
struct Marks {
    std::vector<RegionRecord> regions;
    nlohmann::json config = nlohmann::json::object();
    std::vector<nlohmann::json> notes;
    std::size_t rows = 0;  ///< lines after the header, good or not
};

/// The ranks of a host add up: a region starts with its first rank and ends with its last; samples, updates
/// and tokens are summed; loss and quality are averaged by samples. A rank that begins again what it has
/// ended begins another region, with the next free index. Edges after `latest_ns` are damage.
Marks read_marks(const std::filesystem::path& file, std::int64_t latest_ns, std::vector<Warning>& warnings);

}  // namespace joulemark::store
