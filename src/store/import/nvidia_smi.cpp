// SPDX-License-Identifier: Apache-2.0
#include "store/import/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/run_format.h"
#include "core/units.h"

namespace joulemark::store::imports {
namespace {

struct Column {
    std::string_view query, metric;  ///< name of --query-gpu, column of gpu.csv
    double unit = 1;
};
constexpr double mib = 1024 * 1024;
constexpr std::array gpu_columns{
    Column{"power.draw", "power_w"},
    Column{"power.draw.instant", "power_instant_w"},
    Column{"power.draw.average", "power_average_w"},
    Column{"utilization.gpu", "busy_pct"},
    Column{"utilization.memory", "memory_busy_pct"},
    Column{"memory.used", "memory_used_bytes", mib},
    Column{"clocks.current.sm", "sm_clock_mhz"},
    Column{"clocks.sm", "sm_clock_mhz"},
    Column{"clocks.current.memory", "memory_clock_mhz"},
    Column{"temperature.gpu", "temperature_c"},
    Column{"enforced.power.limit", "power_limit_w"},
    Column{"power.limit", "power_limit_w"},
};
constexpr std::array identities{"index", "uuid", "pci.bus_id"};

std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    csv::split(line, cells);
    for (std::string& cell : cells) {
        const std::size_t first = cell.find_first_not_of(' ');
        cell = first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') + 1 - first);
    }
    return cells;
}

/// "power.draw [W]" -> "power.draw".
std::string query_name(const std::string& header) {
    return header.substr(0, header.find(" ["));
}

/// "56.38 W" -> 56.38; a gap for "[N/A]" and its kin.
double cell_value(const std::string& cell) {
    return csv::number(std::string_view(cell).substr(0, cell.find(' '))).value_or(std::nan(""));
}

/// "2023/07/14 10:10:26.905" in nanoseconds since 1970, as if it were UTC: only differences matter.
std::optional<std::int64_t> time_of(const std::string& text) {
    std::tm time{};
    int milliseconds = 0;
    if (std::sscanf(text.c_str(), "%d/%d/%d %d:%d:%d.%d", &time.tm_year, &time.tm_mon, &time.tm_mday,
                    &time.tm_hour, &time.tm_min, &time.tm_sec, &milliseconds) != 7) {
        return std::nullopt;
    }
    time.tm_year -= 1900;
    time.tm_mon -= 1;
    return std::int64_t{timegm(&time)} * ns_per_s + std::int64_t{milliseconds} * 1'000'000;
}

std::vector<std::string> header_of(std::string_view line) {
    auto header = cells_of(line);
    std::ranges::transform(header, header.begin(), query_name);
    return header;
}

/// The columns of a log that gpu.csv knows, each metric once.
class Layout {
  public:
    explicit Layout(const std::vector<std::string>& header) {
        const auto position = [&](std::string_view query) {
            return static_cast<std::size_t>(std::ranges::find(header, query) - header.begin());
        };
        for (const Column& column : gpu_columns) {
            const std::size_t at = position(column.query);
            if (at < header.size() && std::ranges::find(metrics, column.metric) == metrics.end()) {
                metrics.emplace_back(column.metric);
                sources.emplace_back(at, column.unit);
            }
        }
        for (const char* query : identities) {
            if (const std::size_t at = position(query); at < header.size() && !identity) {
                identity = at;
            }
        }
        if (const std::size_t at = position("name"); at < header.size()) {
            name = at;
        }
    }

    std::vector<std::string> metrics;
    std::vector<std::pair<std::size_t, double>> sources;  ///< column and unit, per metric
    std::optional<std::size_t> identity, name;
};

struct Gpu {
    std::string id, identity, name;
    std::vector<std::int64_t> times = {};
};

/// A line of the log.
struct Row {
    std::int64_t time_ns;
    std::size_t gpu, line;
    std::string values;  ///< cells of gpu.csv
};

/// Those from one time to the next, the shortest first; steps back are none.
std::vector<std::int64_t> distances_of(const std::vector<std::int64_t>& times) {
    std::vector<std::int64_t> distances;
    for (std::size_t i = 1; i < times.size(); ++i) {
        if (times[i] >= times[i - 1]) {
            distances.push_back(times[i] - times[i - 1]);
        }
    }
    std::ranges::sort(distances);
    return distances;
}

/// The median distance.
std::int64_t period_ns(const Gpu& gpu) {
    const auto distances = distances_of(gpu.times);
    return distances.empty() ? 0 : distances[distances.size() / 2];
}

/// Several GPUs are read at nearly one instant and then not for a period; one GPU is read at even distances.
bool plainly_one_gpu(const Gpu& rows) {
    const auto distances = distances_of(rows.times);
    if (distances.empty()) {
        return true;
    }
    const double mean = std::accumulate(distances.begin(), distances.end(), 0.0) /
                        static_cast<double>(distances.size());
    return distances.front() > 0 && static_cast<double>(distances[distances.size() / 10]) > mean / 2;
}

/// Where the log's clock stepped back, time goes on one period after the row before. How much of it really
/// passed is not known: `gap` is the row that says so. Returns the notes about it.
std::vector<std::string> undo_steps_back(std::vector<Row>& rows, const std::vector<Gpu>& gpus,
                                         const std::string& gap, const std::filesystem::path& file) {
    std::vector<std::string> notes;
    std::int64_t shift_ns = 0;
    std::vector<Row> gaps;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        rows[i].time_ns += shift_ns;
        const std::int64_t before_ns = rows[i - 1].time_ns;
        if (rows[i].time_ns >= before_ns) {
            continue;
        }
        const std::int64_t step_ns = before_ns - rows[i].time_ns;
        notes.push_back(fmt::format("{} line {}: the clock stepped back by {:.6g} s; the rows from here on are "
                                    "put one period after the row before, and the energy between is bounded",
                                    file.string(), rows[i].line, seconds(step_ns)));
        const std::int64_t period = std::max<std::int64_t>(period_ns(gpus.front()), 2);
        shift_ns += step_ns + period;
        rows[i].time_ns += step_ns + period;
        for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
            gaps.push_back({before_ns + period / 2, gpu, rows[i].line, gap});
        }
    }
    rows.insert(rows.end(), gaps.begin(), gaps.end());
    std::ranges::stable_sort(rows, {}, &Row::time_ns);
    return notes;
}

}  // namespace

bool is_nvidia_smi_log(const std::filesystem::path& file) {
    csv::LineReader lines(file.string());
    std::string_view line;
    return lines.next_or_rest(line) && line.starts_with("timestamp,") &&
           line.find("power.draw") != std::string_view::npos;
}

Imported import_nvidia_smi(const std::filesystem::path& file, const Pairs& set,
                           const std::filesystem::path& results) {
    csv::LineReader lines(file.string());
    std::string_view line;
    lines.next_or_rest(line);
    const auto header = header_of(line);
    const Layout layout(header);
    std::vector<Gpu> gpus;
    std::vector<Row> rows;
    while (lines.next(line)) {
        const auto cells = cells_of(line);
        const auto time = cells.empty() ? std::nullopt : time_of(cells.front());
        if (cells.size() != header.size() || !time) {
            throw bad_input("{} line {} is no line of an nvidia-smi log with {} columns", file.string(),
                            lines.line_number(), header.size());
        }
        const std::string identity = layout.identity ? cells[*layout.identity] : "";
        auto gpu = std::ranges::find(gpus, identity, &Gpu::identity);
        if (gpu == gpus.end()) {
            gpus.push_back(
                {fmt::format("gpu{}", gpus.size()), identity, layout.name ? cells[*layout.name] : ""});
            gpu = std::prev(gpus.end());
        }
        gpu->times.push_back(*time);
        Row& row = rows.emplace_back(
            Row{*time, static_cast<std::size_t>(gpu - gpus.begin()), lines.line_number(), ""});
        for (const auto& [column, unit] : layout.sources) {
            row.values += ',' + csv::text(cell_value(cells[column]) * unit);
        }
    }
    if (gpus.empty()) {
        throw bad_input("{} holds no samples", file.string());
    }
    if (!layout.identity && !plainly_one_gpu(gpus.front())) {
        throw bad_input(
            "{} has rows of several GPUs and does not say which is whose: log with --query-gpu=timestamp,index,...",
            file.string());
    }
    std::vector<std::string> notes =
        undo_steps_back(rows, gpus, std::string(layout.metrics.size(), ','), file);
    if (lines.next_or_rest(line)) {
        notes.push_back(fmt::format("{} line {} has no end and was dropped: the log was cut there", file.string(),
                                    lines.line_number()));
    }
    RunFolder run;
    run.start_ns = rows.front().time_ns;
    run.end_ns = rows.back().time_ns;
    std::string content =
        fmt::format("{},{}\n", fmt::join(run_format::sample_columns, ","), fmt::join(layout.metrics, ","));
    for (const Row& row : rows) {
        content += fmt::format("{},0,{}{}\n", row.time_ns, gpus[row.gpu].id, row.values);
    }
    nlohmann::json devices = nlohmann::json::array();
    nlohmann::json sources = nlohmann::json::array();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const Gpu& gpu = gpus[i];
        const std::string name = set.contains("hardware") ? set.at("hardware") : gpu.name;
        devices.push_back({{"device", gpu.id},
                           {"file", "gpu"},
                           {"name", name},
                           {"component", "gpu"},
                           {"index", i},
                           {"simulated", false}});
        sources.push_back({{"source", "nvidia-smi"},
                           {"device", gpu.id},
                           {"metrics", layout.metrics},
                           {"method", "sampled"},
                           {"scope", "gpu board"},
                           {"origin", file.filename().string()},
                           {"period_s", seconds(period_ns(gpu))},
                           {"native_period_s", nullptr},
                           {"accuracy_pct", nullptr},
                           {"accuracy_note", ""}});
    }
    run.files = {{std::string(run_format::gpu_file), content}};
    run.run = run_stem(file, content, {}, set);
    const double period_s = seconds(period_ns(gpus.front()));
    run.run_json = {{"name", file.stem().string()},
                    {"factors", factors_of(set)},
                    {"rate_hz", period_s > 0 ? 1 / period_s : 0},
                    {"devices", devices},
                    {"sources", sources}};
    run.write(results);
    return {{run.run}, notes};
}

}  // namespace joulemark::store::imports
