// SPDX-License-Identifier: Apache-2.0
#include "store/import/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
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
    std::vector<std::int64_t> times;
};

double period_of(std::vector<std::int64_t> times) {
    std::ranges::sort(times);
    std::vector<std::int64_t> distances;
    for (std::size_t i = 1; i < times.size(); ++i) {
        distances.push_back(times[i] - times[i - 1]);
    }
    if (distances.empty()) {
        return 0;
    }
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::ranges::nth_element(distances, middle);
    return seconds(*middle);
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
    std::string content =
        fmt::format("{},{}\n", fmt::join(run_format::sample_columns, ","), fmt::join(layout.metrics, ","));
    RunFolder run;
    while (lines.next_or_rest(line)) {
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
                {fmt::format("gpu{}", gpus.size()), identity, layout.name ? cells[*layout.name] : "", {}});
            gpu = std::prev(gpus.end());
        }
        gpu->times.push_back(*time);
        content += fmt::format("{},0,{}", *time, gpu->id);
        for (const auto& [column, unit] : layout.sources) {
            content += ',' + csv::text(cell_value(cells[column]) * unit);
        }
        content += '\n';
        run.start_ns = run.end_ns == 0 ? *time : std::min(run.start_ns, *time);
        run.end_ns = std::max(run.end_ns, *time);
    }
    if (gpus.empty()) {
        throw bad_input("{} holds no samples", file.string());
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
                           {"period_s", period_of(gpu.times)},
                           {"native_period_s", nullptr},
                           {"accuracy_pct", nullptr},
                           {"accuracy_note", ""}});
    }
    run.files = {{std::string(run_format::gpu_file), content}};
    run.run = run_stem(file, content, {}, set);
    const double period_s = period_of(gpus.front().times);
    run.run_json = {{"name", file.stem().string()},
                    {"factors", factors_of(set)},
                    {"rate_hz", period_s > 0 ? 1 / period_s : 0},
                    {"devices", devices},
                    {"sources", sources}};
    run.write(results);
    return {{run.run}, {}};
}

}  // namespace joulemark::store::imports
