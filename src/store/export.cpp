// SPDX-License-Identifier: Apache-2.0
#include "store/export.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/csv.h"
#include "core/files.h"
#include "core/run_format.h"
#include "core/units.h"
#include "store/host_digest.h"
#include "store/load.h"
#include "store/run_files.h"
#include "store/summary.h"

namespace joulemark::store {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sensors::File;
using enum sensors::Metric;
using sensors::Metric;

/// One table, cell by cell in the order of its columns. Appears under its name only when complete.
class TableWriter {
  public:
    TableWriter(const fs::path& out, const char* name, ExportFormat format, std::vector<std::string> columns)
        : format_(format),
          columns_(std::move(columns)),
          path_(out / (std::string(name) + (format == ExportFormat::csv ? ".csv" : ".jsonl"))),
          temporary_(path_.string() + ".tmp"),
          file_(std::fopen(temporary_.c_str(), "we")) {
        if (!file_) {
            throw failure();
        }
        if (format_ == ExportFormat::csv) {
            for (const std::string& column : columns_) {
                cell(column);
            }
            end_row();
        }
    }
    ~TableWriter() {
        if (file_) {
            file_.reset();
            std::remove(temporary_.c_str());
        }
    }
    TableWriter(const TableWriter&) = delete;
    TableWriter& operator=(const TableWriter&) = delete;

    void cell(const std::string& value) {
        put(value.empty() ? "" : format_ == ExportFormat::csv ? csv::quote(value) : json(value).dump());
    }
    void cell(double value) { put(std::isfinite(value) ? csv::text(value) : std::string()); }
    void cell(std::optional<double> value) { cell(value.value_or(nan)); }
    void cell(bool value) { put(value ? "true" : "false"); }
    void cell(std::int64_t value) { put(std::to_string(value)); }
    void cell(std::size_t value) { put(std::to_string(value)); }
    void cell(const json& value) {
        if (format_ == ExportFormat::csv || value.is_string()) {
            cell(value.is_null() ? std::string() : factor_text(value));
        } else {
            put(value.is_null() ? "" : value.dump());
        }
    }

    void end_row() {
        if (format_ == ExportFormat::jsonl) {
            line_ += line_.empty() ? "{}" : "}";
        }
        line_ += '\n';
        if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size()) {
            throw failure();
        }
        line_.clear();
        column_ = 0;
    }

    void finish() {
        if (std::fclose(file_.release()) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
            const Error error = failure();
            std::remove(temporary_.c_str());
            throw error;
        }
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    void put(const std::string& text) {
        if (format_ == ExportFormat::csv) {
            line_ += (column_ > 0 ? "," : "") + text;
        } else if (!text.empty()) {
            line_ += (line_.empty() ? "{\"" : ",\"") + columns_[column_] + "\":" + text;
        }
        ++column_;
    }
    Error failure() const {
        return environment_error("cannot write {}: {}", path_.string(), std::strerror(errno));
    }

    ExportFormat format_;
    std::vector<std::string> columns_;
    fs::path path_, temporary_;
    std::unique_ptr<std::FILE, Close> file_;
    std::string line_;
    std::size_t column_ = 0;
};

/// A column of the time series and the metrics that fill it, the best first.
struct SeriesColumn {
    const char* name;
    std::vector<Metric> metrics;
};

const std::vector<SeriesColumn>& series_columns() {
    static const std::vector<SeriesColumn> columns{
        {"gpu_memory_used_bytes", {gpu_memory_used_bytes}},
        {"gpu_busy_pct", {gpu_busy_pct}},
        {"sm_util_pct", {gpu_sm_util_pct}},
        {"gpu_memory_busy_pct", {gpu_memory_busy_pct}},
        {"power_w", {gpu_power_instant_w, gpu_power_w, gpu_power_average_w, cpu_power_w, node_power_w}},
        {"energy_counter_j", {gpu_energy_j, cpu_energy_j, node_energy_j}},
        {"sm_clock_mhz", {gpu_sm_clock_mhz}},
        {"memory_clock_mhz", {gpu_memory_clock_mhz}},
        {"temperature_c", {gpu_temperature_c}},
        {"power_limit_w", {gpu_power_limit_w}},
        {"throttle_reasons", {gpu_throttle_reasons}},
        {"cpu_busy_pct", {cpu_busy_pct}},
        {"process_cpu_s", {cpu_process_s}},
        {"host_memory_used_bytes", {node_memory_used_bytes}},
        {"cgroup_memory_bytes", {node_cgroup_memory_bytes}},
    };
    return columns;
}

void write_samples(TableWriter& table, const fs::path& path, File file, const RunRecord& run,
                   const HostRecord& host, std::int64_t start_ns) {
    struct Facts {
        double memory_bytes = nan;
        bool simulated = false;
    };
    std::map<std::string, Facts, std::less<>> devices;
    for (const json& device : json_array(host.run_json, "devices")) {
        devices[json_text(device, "device")] = {json_number(device, "memory_bytes").value_or(nan),
                                                json_flag(device, "simulated")};
    }
    SampleReader reader(path, file, std::numeric_limits<std::int64_t>::max());
    std::array<int, sensors::metric_count> place;
    place.fill(-1);
    for (std::size_t i = 0; i < reader.metrics().size(); ++i) {
        place[static_cast<std::size_t>(reader.metrics()[i])] = static_cast<int>(i);
    }
    SampleRow row;
    const auto value = [&](Metric metric) {
        const int at = place[static_cast<std::size_t>(metric)];
        return at < 0 ? nan : row.values[static_cast<std::size_t>(at)];
    };
    while (reader.next(row)) {
        const auto found = devices.find(row.device);
        const Facts facts = found != devices.end() ? found->second : Facts{};
        table.cell(run.run);
        table.cell(host.host);
        table.cell(std::string(row.device));
        table.cell(seconds(row.time_ns - start_ns));
        table.cell(100 * value(gpu_memory_used_bytes) / facts.memory_bytes);
        for (const SeriesColumn& column : series_columns()) {
            double best = nan;
            for (const Metric metric : column.metrics) {
                best = std::isnan(best) ? value(metric) : best;
            }
            table.cell(best);
        }
        table.cell(facts.simulated);
        table.end_row();
    }
}

void export_series(const fs::path& dir, const Database& database, ExportFormat format, const fs::path& out) {
    std::vector<std::string> columns{"run", "host", "device", "time_s", "gpu_memory_util_pct"};
    for (const SeriesColumn& column : series_columns()) {
        columns.emplace_back(column.name);
    }
    columns.emplace_back("simulated");
    TableWriter table(out, "timeseries", format, std::move(columns));
    for_each_run(database, [&](const RunRecord& run) {
        for (const HostRecord& host : run.hosts) {
            std::int64_t start_ns = 0;
            for (const RegionRecord& region : host.regions) {
                start_ns = region.name == run_format::command_region ? region.start_ns : start_ns;
            }
            const fs::path folder = dir / run_format::runs_folder / run.run / host.host;
            write_samples(table, folder / run_format::gpu_file, File::gpu, run, host, start_ns);
            write_samples(table, folder / run_format::cpu_file, File::cpu, run, host, start_ns);
            write_samples(table, folder / run_format::node_file, File::node, run, host, start_ns);
        }
    });
    table.finish();
}

constexpr std::array energy_columns{
    "energy_j",         "energy_components", "energy_method",       "energy_bound_j",
    "gpu_energy_j",     "cpu_energy_j",      "dram_energy_j",       "node_energy_j",
    "joule_per_sample", "mean_power_w",      "gpu_memory_util_pct", "gpu_busy_pct",
    "sm_util_pct",      "gpu_covered_pct",   "gpus_without_energy", "simulated"};

void energy_cells(TableWriter& table, const RegionSummary& summary) {
    table.cell(summary.energy_j);
    table.cell(summary.energy_components);
    table.cell(summary.energy_method);
    table.cell(summary.energy_bound_j);
    const auto by_component = summary.sum.by_component();
    for (const char* component : {"gpu", "cpu", "dram", "node"}) {
        const auto found = by_component.find(component);
        table.cell(found != by_component.end() ? found->second : nan);
    }
    table.cell(summary.joule_per_sample);
    table.cell(summary.mean_power_w);
    table.cell(summary.sum.gpu_memory_util_pct());
    table.cell(summary.sum.gpu_busy_pct());
    table.cell(summary.sum.sm_util_pct());
    table.cell(summary.sum.gpu_covered_pct());
    table.cell(summary.sum.gpus_without_energy());
    table.cell(summary.sum.simulated());
}

void export_epochs(const Database& database, ExportFormat format, const fs::path& out) {
    std::vector<std::string> columns{
        "run",     "region", "index", "hosts",        "open",    "wall_time_s",      "samples",
        "updates", "tokens", "loss",  "quality_name", "quality", "quality_direction"};
    columns.insert(columns.end(), energy_columns.begin(), energy_columns.end());
    TableWriter table(out, "epochs", format, std::move(columns));
    for_each_run(database, [&](const RunRecord& run) {
        for (const RegionSummary& summary : summarise_regions(run)) {
            if (summary.name != "epoch" && summary.name != "block") {
                continue;
            }
            table.cell(run.run);
            table.cell(summary.name);
            table.cell(summary.index);
            table.cell(summary.hosts);
            table.cell(summary.open);
            table.cell(summary.wall_time_s);
            table.cell(summary.samples);
            table.cell(summary.updates);
            table.cell(summary.tokens);
            table.cell(summary.loss.value());
            table.cell(summary.quality_name);
            table.cell(summary.quality.value());
            table.cell(summary.quality_direction);
            energy_cells(table, summary);
            table.end_row();
        }
    });
    table.finish();
}

void export_runs(const Database& database, ExportFormat format, const fs::path& out) {
    std::set<std::string> factors;
    Statement all = database.prepare("SELECT factors FROM runs");
    while (all.step()) {
        const json of_run = all.json(0);
        for (const auto& [key, value] : of_run.items()) {
            factors.insert(key);
        }
    }
    std::vector<std::string> columns{"run", "status", "expected_hosts", "received_hosts", "gpus_metered"};
    for (const std::string& factor : factors) {
        columns.push_back("factor_" + factor);
    }
    for (const char* column : {"wall_time_s", "epochs", "training_speed_s", "samples", "gpu_hours",
                               "gpu_energy_counter_j", "gpu_energy_integrated_j", "gpu_energy_protocol_j"}) {
        columns.emplace_back(column);
    }
    columns.insert(columns.end(), energy_columns.begin(), energy_columns.end());
    TableWriter table(out, "runs", format, std::move(columns));
    for_each_run(database, [&](const RunRecord& run) {
        const RunSummary summary = summarise_run(run);
        const RegionSummary whole = summary.command.value_or(RegionSummary{});
        const auto of_gpus = whole.sum.side_by_side("gpu");
        Value samples;
        for (const HostRecord& host : run.hosts) {
            for (const RegionRecord& region : host.regions) {
                accumulate(samples, region.name == "epoch" ? region.samples : std::nullopt);
            }
        }
        table.cell(run.run);
        table.cell(run.status);
        table.cell(run.expected_hosts.size());
        table.cell(run.hosts.size());
        table.cell(whole.gpus);
        for (const std::string& factor : factors) {
            table.cell(run.factors.value(factor, json()));
        }
        table.cell(summary.wall_time_s);
        table.cell(summary.epochs);
        table.cell(summary.training_speed_s);
        table.cell(samples);
        table.cell(summary.gpu_hours);
        table.cell(of_gpus.counter_j);
        table.cell(of_gpus.integrated_j);
        table.cell(of_gpus.protocol_j);
        energy_cells(table, whole);
        table.end_row();
    });
    table.finish();
}

}  // namespace

void export_results(const fs::path& dir, const Database& database, ExportFormat format, const fs::path& out) {
    files::make_directories(out);
    export_series(dir, database, format, out);
    export_epochs(database, format, out);
    export_runs(database, format, out);
}

}  // namespace joulemark::store
