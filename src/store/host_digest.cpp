// SPDX-License-Identifier: Apache-2.0
#include "store/host_digest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/run_format.h"
#include "core/series.h"
#include "core/units.h"
#include "store/device_windows.h"
#include "store/document_shape.h"
#include "store/run_files.h"
#include "store/short_regions.h"

namespace joulemark::store {
namespace {

using nlohmann::json;
using sensors::Behaviour;
using sensors::File;
using sensors::Metric;

/// Edges of a region whose real ones are not known until all samples were seen: outside all of them.
constexpr std::int64_t before_all = 0;
constexpr std::int64_t after_all = std::numeric_limits<std::int64_t>::max();

constexpr std::array<std::pair<File, std::string_view>, 3> sample_files{
    {{File::gpu, run_format::gpu_file},
     {File::cpu, run_format::cpu_file},
     {File::node, run_format::node_file}}};

std::optional<std::int64_t> json_ns(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? std::optional(found->get<std::int64_t>())
                                                               : std::nullopt;
}

/// Only for a device that run.json does not list.
std::string component_of(std::string_view device, File file) {
    if (file == File::gpu) {
        return "gpu";
    }
    return file == File::node ? "node" : device.starts_with("dram") ? "dram" : "cpu";
}

File file_of(const json& device) {
    const std::string file = json_text(device, "file");
    return file.starts_with("gpu") ? File::gpu : file.starts_with("node") ? File::node : File::cpu;
}

SourceFacts source_facts(const json& source, File file, double default_period_s) {
    SourceFacts facts;
    for (const json& name : json_array(source, "metrics")) {
        if (name.is_string()) {
            if (const auto metric = sensors::metric_named(file, name.get_ref<const std::string&>())) {
                facts.metrics.push_back(*metric);
            }
        }
    }
    facts.period_s = json_number(source, "period_s").value_or(default_period_s);
    // A reading is at most as old as the sensor's refresh; where that is not known, as the time between
    // readings.
    facts.native_period_s =
        json_number(source, "native_period_s").value_or(json_number(source, "period_s").value_or(0));
    facts.estimated = json_text(source, "method") == "estimated";
    if (const auto calibration = source.find("calibration");
        calibration != source.end() && calibration->is_object()) {
        for (const Metric metric : facts.metrics) {
            const auto timing = calibration->find(sensors::info(metric).name);
            if (timing != calibration->end() && sensors::info(metric).behaviour == Behaviour::counter) {
                facts.timing = {.refresh_s = json_number(*timing, "refresh_s"),
                                .lag_s = json_number(*timing, "lag_s"),
                                .window_s = json_number(*timing, "window_s")};
            }
        }
    }
    return facts;
}

/// Nothing of a host is later: the end of its command, or, where that is not known, of its files, and an hour
/// for the idle time after it.
std::int64_t latest_ns(const HostRecord& record, const std::filesystem::path& folder) {
    constexpr std::int64_t after_end = 3600 * ns_per_s;
    constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
    if (record.end_json) {
        const auto end = json_ns(*record.end_json, "end_ns");
        return end && *end < unknown - after_end ? *end + after_end : unknown;
    }
    const json anchor = record.run_json.value("anchor", json::object());
    const auto realtime = json_ns(anchor, "realtime_ns"), monotonic = json_ns(anchor, "monotonic_ns");
    std::int64_t written = 0;
    for (const std::string_view name : run_format::all_files) {
        struct stat status {};
        if (stat((folder / name).c_str(), &status) == 0) {
            written = std::max(written, status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec);
        }
    }
    const bool known = realtime && monotonic && json_text(record.run_json, "clock") == "monotonic";
    return known && written > *realtime ? *monotonic + (written - *realtime) + after_end : unknown;
}

/// Reads the sample files of one host into the windows of its devices.
class HostReader {
  public:
    HostReader(const json& run_json, const Edges& edges, const Edges& profile_edges, std::int64_t latest_ns,
               std::vector<Warning>& warnings)
        : run_json_(run_json),
          edges_(edges),
          profile_edges_(profile_edges),
          latest_ns_(latest_ns),
          warnings_(warnings) {
        const double rate_hz = json_number(run_json, "rate_hz").value_or(0);
        period_s_ = rate_hz > 0 ? 1 / rate_hz : 0;
        for (const json& device : json_array(run_json, "devices")) {
            if (const std::string id = json_text(device, "device"); !id.empty()) {
                listed_device(device, id);
            }
        }
    }

    void keep_refreshes(const std::vector<meter::RefreshLog::Span>& spans) {
        if (!spans.empty()) {
            for (auto& [id, device] : devices_) {
                device.keep_refreshes(spans);
            }
        }
    }

    void read(const std::filesystem::path& path, File file) {
        try {
            SampleReader reader(path, file, latest_ns_);
            SampleRow row;
            while (reader.next(row)) {
                first_ns_ = std::min(first_ns_, row.time_ns);
                last_ns_ = std::max(last_ns_, row.time_ns);
                device(row.device, file).add(row.time_ns, reader.metrics(), row.values, row.read_ns);
            }
            rows_ += reader.rows();
            if (auto damage = reader.damage()) {
                warnings_.push_back(std::move(*damage));
            }
        } catch (const Error& error) {
            warnings_.push_back({"unreadable_file", error.what()});
        }
    }

    /// By device, in natural order: gpu2 before gpu10.
    const auto& devices() const { return devices_; }
    std::int64_t first_ns() const { return std::min(first_ns_, last_ns_); }
    std::int64_t last_ns() const { return last_ns_; }
    /// Lines read of all files.
    std::size_t rows() const { return rows_; }

  private:
    struct NaturalOrder {
        using is_transparent = void;
        bool operator()(std::string_view a, std::string_view b) const {
            const auto stem = [](std::string_view id) {
                return id.substr(0, id.find_last_not_of("0123456789") + 1);
            };
            return std::tuple(stem(a), a.size(), a) < std::tuple(stem(b), b.size(), b);
        }
    };

    void listed_device(const json& device, const std::string& id) {
        const File file = file_of(device);
        DeviceFacts facts;
        facts.id = id;
        facts.component = json_text(device, "component");
        if (facts.component.empty()) {
            facts.component = component_of(id, file);
        }
        facts.memory_bytes = json_number(device, "memory_bytes");
        facts.power_limit_w = json_number(device, "power_limit_w");
        facts.simulated = json_flag(device, "simulated");
        facts.period_s = period_s_;
        for (const json& source : json_array(run_json_, "sources")) {
            if (json_text(source, "device") == id) {
                facts.sources.push_back(source_facts(source, file, period_s_));
            }
        }
        devices_.try_emplace(id, edges_, profile_edges_, std::move(facts));
    }

    DeviceWindows& device(std::string_view id, File file) {
        if (last_device_ != nullptr && last_id_ == id) {
            return *last_device_;
        }
        auto found = devices_.find(id);
        if (found == devices_.end()) {
            DeviceFacts facts;
            facts.id = std::string(id);
            facts.component = component_of(id, file);
            facts.simulated = json_flag(run_json_, "simulated");
            facts.period_s = period_s_;
            found = devices_.try_emplace(facts.id, edges_, profile_edges_, facts).first;
        }
        last_id_ = found->first;
        last_device_ = &found->second;
        return found->second;
    }

    const json& run_json_;
    const Edges& edges_;
    const Edges& profile_edges_;
    std::int64_t latest_ns_;
    std::vector<Warning>& warnings_;
    double period_s_ = 0;
    std::size_t rows_ = 0;
    std::map<std::string, DeviceWindows, NaturalOrder> devices_;
    std::string_view last_id_;
    DeviceWindows* last_device_ = nullptr;
    std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max(), last_ns_ = 0;
};

/// Edges of the windows long enough for a power profile: 10 s, and a thousandth of the longest, so that
/// memory stays small whatever a program marks.
std::vector<std::int64_t> profile_times(const std::vector<Window>& windows) {
    std::int64_t longest = 0;
    for (const Window& window : windows) {
        longest = std::max(longest, window.end_edge == after_all ? 0 : window.end_edge - window.start_edge);
    }
    std::vector<std::int64_t> times;
    for (const Window& window : windows) {
        if (window.end_edge - window.start_edge >= std::max(10 * ns_per_s, longest / 1000)) {
            times.insert(times.end(), {window.start_edge, window.end_edge});
        }
    }
    return times;
}

/// The whole command is a region, the first one here, even where the meter could not mark it. True when
/// not even its start is known.
bool ensure_command_region(std::vector<RegionRecord>& regions, const json& run_json) {
    if (std::ranges::count(regions, run_format::command_region, &RegionRecord::name) > 0) {
        return false;
    }
    const auto start_ns = json_ns(run_json, "start_ns");
    RegionRecord command;
    command.name = run_format::command_region;
    command.source = "meter";
    command.ranks = 1;
    command.open = true;
    command.start_ns = std::max(start_ns.value_or(before_all), before_all);
    regions.insert(regions.begin(), std::move(command));
    return !start_ns;
}

/// The meter counts what it writes, so a file that was cut or lost afterwards is noticed.
void warn_of_missing_rows(HostRecord& record, std::size_t found) {
    const json meter = record.end_json ? record.end_json->value("meter", json::object()) : json::object();
    const double written = json_number(meter, "rows").value_or(0) - json_number(meter, "lost").value_or(0);
    const bool told = std::ranges::count(record.warnings, "unreadable_file", &Warning::code) > 0;
    if (static_cast<double>(found) < written && !told) {
        record.warnings.push_back(
            {"missing_rows",
             fmt::format(
                 "{:.0f} of the {:.0f} rows that the meter wrote are missing: a file of this host was "
                 "removed or cut",
                 written - static_cast<double>(found), written)});
    }
}

void add_told(std::vector<Warning>& warnings, const json& file) {
    for (const json& text : json_array(file, "warnings")) {
        if (text.is_string()) {
            warnings.push_back({"told_by_meter", text.get<std::string>()});
        }
    }
}

}  // namespace

std::optional<double> json_number(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string json_text(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool json_flag(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

const json& json_array(const json& object, const char* key) {
    static const json none = json::array();
    const auto found = object.find(key);
    return found != object.end() && found->is_array() ? *found : none;
}

std::optional<double> achieved_hz(const json& end_json, const json& source) {
    const auto meter = end_json.find("meter");
    if (meter == end_json.end() || !meter->is_object() || !meter->contains("achieved_hz")) {
        return std::nullopt;
    }
    const json& rates = meter->at("achieved_hz");
    const std::string name = json_text(source, "source");
    const auto of_device = json_number(rates, (name + '.' + json_text(source, "device")).c_str());
    return of_device ? of_device : json_number(rates, name.c_str());
}

HostDigest digest_host(const std::filesystem::path& folder, const std::string& run, const std::string& host) {
    HostDigest digest;
    HostRecord& record = digest.record;
    record.host = host;
    if (auto run_json = read_json(folder / run_format::run_file, run_shape(), record.warnings)) {
        record.run_json = std::move(*run_json);
        add_told(record.warnings, record.run_json);
        if (const auto schema = json_number(record.run_json, "schema");
            schema && *schema != run_format::schema) {
            record.warnings.push_back(
                {"unknown_schema",
                 fmt::format(
                     "run.json is of schema {}, this program knows {}: what is read may be wrong, use the "
                     "joulemark that wrote it",
                     *schema, run_format::schema)});
        }
    } else {
        record.run_json = json::object();
        record.warnings.push_back({"no_run_json",
                                   "run.json is missing: configuration, devices and provenance of this "
                                   "host are unknown"});
    }
    record.end_json = read_json(folder / run_format::end_file, end_shape(), record.warnings);
    if (record.end_json) {
        add_told(record.warnings, *record.end_json);
    }
    const std::int64_t latest = latest_ns(record, folder);
    std::size_t rows = 0;
    try {
        Marks marks = read_marks(folder / run_format::regions_file, latest, record.warnings);
        record.regions = std::move(marks.regions);
        digest.config = std::move(marks.config);
        rows = marks.rows;
    } catch (const Error& error) {
        record.warnings.push_back({"unreadable_file", error.what()});
    }
    const bool start_unknown = ensure_command_region(record.regions, record.run_json);
    const auto command_end = record.end_json ? json_ns(*record.end_json, "end_ns") : std::nullopt;

    std::vector<Window> windows;
    std::vector<std::int64_t> times;
    for (RegionRecord& region : record.regions) {
        region.run = run;
        region.host = host;
        const bool unended = region.open && region.end_ns == 0;
        if (unended && command_end) {
            region.end_ns = std::max(*command_end, region.start_ns);
            // The command has ended when the meter says so, whether or not an edge was written.
            region.open = region.name != run_format::command_region;
        }
        const bool endless = unended && !command_end;
        windows.push_back({.start_edge = region.start_ns, .end_edge = endless ? after_all : region.end_ns});
        times.insert(times.end(), {windows.back().start_edge, windows.back().end_edge});
    }
    const Edges edges(std::move(times));
    const Edges profile_edges(profile_times(windows));
    HostReader reader(record.run_json, edges, profile_edges, latest, record.warnings);
    reader.keep_refreshes(short_spans(record.regions));
    for (const auto& [file, name] : sample_files) {
        reader.read(folder / name, file);
    }
    warn_of_missing_rows(record, rows + reader.rows());

    for (std::size_t i = 0; i < windows.size(); ++i) {
        RegionRecord& region = record.regions[i];
        if (i == 0 && start_unknown) {
            region.start_ns = reader.first_ns();
        }
        if (windows[i].end_edge == after_all) {
            region.end_ns = std::max(reader.last_ns(), region.start_ns);
        }
        windows[i].start_ns = region.start_ns;
        windows[i].end_ns = region.end_ns;
        for (const auto& [id, device] : reader.devices()) {
            region.devices.push_back(device.over(windows[i]));
        }
    }
    std::size_t number = 0;
    for (const auto& [id, device] : reader.devices()) {
        attribute_short_regions(record, device, number++);
    }
    for (const auto& [id, device] : reader.devices()) {
        for (Series& series : device.series()) {
            series.run = run;
            series.host = host;
            digest.series.push_back(std::move(series));
        }
        std::ranges::move(device.warnings(), std::back_inserter(record.warnings));
    }
    return digest;
}

}  // namespace joulemark::store
