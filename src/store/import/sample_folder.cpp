// SPDX-License-Identifier: Apache-2.0
#include "store/import/sample_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/run_format.h"
#include "core/units.h"

namespace joulemark::store::imports {
namespace {

constexpr std::array names{"fast.csv", "slow.csv", "marks.csv"};

/// Column of such a folder, metric of gpu.csv, and the unit's size.
struct SampleColumn {
    std::string_view from, metric;
    double unit;
};
constexpr std::array fast_columns{SampleColumn{"power_instant_mw", "power_instant_w", 1e-3},
                                  SampleColumn{"power_average_mw", "power_average_w", 1e-3},
                                  SampleColumn{"sm_mhz", "sm_clock_mhz", 1}};
constexpr std::array slow_columns{SampleColumn{"energy_mj", "energy_j", 1e-3}};
constexpr std::array all_metrics{"power_instant_w", "power_average_w", "sm_clock_mhz", "energy_j"};

/// A CSV file whose columns are asked for by name.
class Reader {
  public:
    explicit Reader(const std::filesystem::path& path) : path_(path), lines_(path.string()) {
        std::string_view line;
        if (!lines_.next_or_rest(line)) {
            throw bad_input("{} is empty", path.string());
        }
        csv::split(line, header_);
    }

    bool has(std::string_view name) const { return std::ranges::find(header_, name) != header_.end(); }

    bool next() {
        std::string_view line;
        if (!lines_.next_or_rest(line)) {
            return false;
        }
        csv::split(line, cells_);
        if (cells_.size() != header_.size()) {
            throw bad_input("{} line {} has {} cells, its header has {}", path_.string(),
                            lines_.line_number(), cells_.size(), header_.size());
        }
        return true;
    }
    const std::string& text(std::string_view name) const {
        const auto found = std::ranges::find(header_, name);
        if (found == header_.end()) {
            throw bad_input("{} has no column {}, it has {}", path_.string(), name, fmt::join(header_, ", "));
        }
        return cells_[static_cast<std::size_t>(found - header_.begin())];
    }
    std::int64_t nanoseconds(std::string_view name) const {
        const auto value = csv::integer(text(name));
        return value ? *value : throw wrong(name);
    }
    double number(std::string_view name) const {
        const auto value = csv::number(text(name));
        return value ? *value : throw wrong(name);
    }

  private:
    Error wrong(std::string_view name) const {
        return bad_input("{} line {}: {} is '{}', which is no number", path_.string(), lines_.line_number(),
                         name, text(name));
    }

    std::filesystem::path path_;
    csv::LineReader lines_;
    std::vector<std::string> header_, cells_;
};

struct Sample {
    std::int64_t time_ns, read_ns;
    std::array<double, all_metrics.size()> values;
};

struct Samples {
    std::vector<Sample> rows;
    std::vector<std::string> metrics;
    double period_s = 0;  ///< median distance of two
};

template <typename Columns>
Samples read_samples(const std::filesystem::path& path, const Columns& columns) {
    Reader reader(path);
    Samples samples;
    std::vector<std::pair<const SampleColumn*, std::size_t>> present;
    for (const SampleColumn& column : columns) {
        if (reader.has(column.from)) {
            const auto at = std::ranges::find(all_metrics, column.metric) - all_metrics.begin();
            present.emplace_back(&column, static_cast<std::size_t>(at));
            samples.metrics.emplace_back(column.metric);
        }
    }
    while (reader.next()) {
        const std::int64_t begin = reader.nanoseconds("begin_ns");
        Sample sample{begin, reader.nanoseconds("end_ns") - begin, {}};
        sample.values.fill(std::nan(""));
        for (const auto& [column, at] : present) {
            sample.values[at] =
                reader.text(column->from).empty() ? std::nan("") : reader.number(column->from) * column->unit;
        }
        samples.rows.push_back(sample);
    }
    std::vector<std::int64_t> distances;
    for (std::size_t i = 1; i < samples.rows.size(); ++i) {
        distances.push_back(samples.rows[i].time_ns - samples.rows[i - 1].time_ns);
    }
    if (!distances.empty()) {
        std::ranges::nth_element(distances,
                                 distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2));
        samples.period_s = seconds(distances[distances.size() / 2]);
    }
    return samples;
}

std::string sample_file(std::vector<Sample> rows) {
    std::ranges::stable_sort(rows, {}, &Sample::time_ns);
    std::string content =
        fmt::format("{},{}\n", fmt::join(run_format::sample_columns, ","), fmt::join(all_metrics, ","));
    for (const Sample& row : rows) {
        content += fmt::format("{},{},gpu0", row.time_ns, row.read_ns);
        for (const double value : row.values) {
            content += ',' + csv::text(value);
        }
        content += '\n';
    }
    return content;
}

/// regions.csv of the marks. Regions of one name are counted in the order of their start.
std::string region_file(const std::filesystem::path& path) {
    struct Edge {
        std::int64_t time_ns;
        std::string row;
    };
    Reader reader(path);
    std::vector<Edge> edges;
    std::map<std::string, int> counts;
    while (reader.next()) {
        const std::string kind = reader.text("kind");
        if (kind == "train") {
            continue;
        }
        const int index = counts[kind]++;
        for (const char* event : {"begin", "end"}) {
            const std::int64_t time =
                reader.nanoseconds(event == std::string_view("begin") ? "begin_ns" : "end_ns");
            edges.push_back(
                {time, fmt::format("{},{},{},{},0,,,,,,,,imported,", time, event, csv::quote(kind), index)});
        }
    }
    std::ranges::stable_sort(edges, {}, &Edge::time_ns);
    std::string content = fmt::format("{}\n", fmt::join(run_format::region_columns, ","));
    for (const Edge& edge : edges) {
        content += edge.row + '\n';
    }
    return content;
}

/// How often the last metric of these samples shows a new value: the sensor's refresh, where it was read more
/// often than that.
std::optional<double> refresh_s(const Samples& samples) {
    const auto at = static_cast<std::size_t>(std::ranges::find(all_metrics, samples.metrics.back()) -
                                             all_metrics.begin());
    std::vector<std::int64_t> distances;
    std::int64_t changed_ns = 0;
    for (std::size_t i = 1; i < samples.rows.size(); ++i) {
        if (samples.rows[i].values[at] != samples.rows[i - 1].values[at]) {
            if (changed_ns != 0) {
                distances.push_back(samples.rows[i].time_ns - changed_ns);
            }
            changed_ns = samples.rows[i].time_ns;
        }
    }
    if (distances.empty() || distances.size() * 3 > samples.rows.size()) {
        return std::nullopt;
    }
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::ranges::nth_element(distances, middle);
    return seconds(*middle);
}

nlohmann::json source_json(const char* name, const Samples& samples, const char* method,
                           std::optional<double> native_period_s) {
    return {{"source", name},
            {"device", "gpu0"},
            {"metrics", samples.metrics},
            {"method", method},
            {"scope", "gpu board"},
            {"origin", "imported"},
            {"period_s", samples.period_s},
            {"native_period_s", native_period_s ? nlohmann::json(*native_period_s) : nlohmann::json()},
            {"accuracy_pct", nullptr},
            {"accuracy_note", ""}};
}

}  // namespace

bool is_sample_folder(const std::filesystem::path& folder) {
    return std::ranges::all_of(names,
                               [&](const char* name) { return std::filesystem::exists(folder / name); });
}

Imported import_sample_folder(const std::filesystem::path& folder, const Pairs& set,
                              const std::filesystem::path& results) {
    const Samples fast = read_samples(folder / "fast.csv", fast_columns);
    const Samples slow = read_samples(folder / "slow.csv", slow_columns);
    std::vector<Sample> rows = fast.rows;
    rows.insert(rows.end(), slow.rows.begin(), slow.rows.end());
    if (rows.empty()) {
        throw bad_input("{} holds no samples", folder.string());
    }
    RunFolder run;
    const auto normal = std::filesystem::absolute(folder).lexically_normal();
    const std::string regions = region_file(folder / "marks.csv");
    run.files = {{std::string(run_format::gpu_file), sample_file(rows)},
                 {std::string(run_format::regions_file), regions}};
    run.run = run_stem(normal.has_filename() ? normal.filename() : normal.parent_path().filename(),
                       run.files.begin()->second + regions, {}, set);
    const auto [first, last] = std::ranges::minmax_element(rows, {}, &Sample::time_ns);
    run.start_ns = first->time_ns;
    run.end_ns = last->time_ns + last->read_ns;
    run.run_json = {
        {"name",
         normal.has_filename() ? normal.filename().string() : normal.parent_path().filename().string()},
        {"factors", factors_of(set)},
        {"rate_hz", fast.period_s > 0 ? 1 / fast.period_s : 0},
        {"devices",
         {{{"device", "gpu0"},
           {"file", "gpu"},
           {"name", set.contains("hardware") ? set.at("hardware") : ""},
           {"component", "gpu"},
           {"index", 0},
           {"simulated", false}}}},
        {"sources",
         {source_json("fast", fast, "sampled", std::nullopt),
          source_json("slow", slow, "counter", slow.metrics.empty() ? std::nullopt : refresh_s(slow))}}};
    run.write(results);
    return {{run.run}, {}};
}

}  // namespace joulemark::store::imports
