// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/run_format.h"
#include "launch/programs.h"
#include "meter/calibration_file.h"
#include "meter/power_timing.h"
#include "meter/run.h"
#include "report/terminal.h"
#include "sensors/catalog.h"
#include "store/host_digest.h"
#include "store/run_files.h"

namespace joulemark::cli {
namespace {

using nlohmann::json;
using sensors::Metric;

/// A results directory that is gone afterwards.
class Scratch {
  public:
    Scratch() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "joulemark-calibrate-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) {
            throw environment_error("cannot make a folder in {}: free space there, or set TMPDIR",
                                    std::filesystem::temp_directory_path().string());
        }
        path_ = pattern;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

constexpr std::array counters{Metric::gpu_energy_j, Metric::cpu_energy_j, Metric::node_energy_j};
constexpr std::array powers{Metric::gpu_power_w, Metric::gpu_power_instant_w, Metric::gpu_power_average_w};
/// At least three reads per refresh of 20 ms, and out of step with refreshes, so that each read narrows them
/// down. The counter may take 4 ms a read.
constexpr double power_rate_hz = 233.7, energy_rate_hz = 167.3;

/// Of the sensors here, whether any can be calibrated, and which device a load has to run on.
struct Here {
    bool calibratable = false, nvidia = false;
};
Here look_around() {
    Here here;
    const sensors::Machine machine = sensors::discover({});
    for (const auto& source : machine.sources) {
        const sensors::SourceInfo& info = source->info();
        here.calibratable |=
            info.method != "estimated" && std::ranges::any_of(info.metrics, [](Metric metric) {
                return std::ranges::count(counters, metric) + std::ranges::count(powers, metric) > 0;
            });
        here.nvidia |= info.name.starts_with("nvml");
    }
    return here;
}

std::vector<std::string> default_load(const Here& here) {
    const char* simulated = std::getenv("JOULEMARK_SIM");
    if (simulated != nullptr && *simulated != '\0') {
        if (const auto simulator = launch::find_program("joulemark-sim")) {
            return {simulator->string(),
                    "bursts",
                    "--burst",
                    "square=400:0.45",
                    "--gap-s",
                    "0.55",
                    "--repeats",
                    "60",
                    "--vary",
                    "0.4"};
        }
    } else if (const auto program = launch::find_program("joulemark-train")) {
        return {program->string(), "square-wave", "--device", here.nvidia ? "cuda" : "cpu"};
    }
    throw environment_error(
        "doctor --calibrate found no load: {} is neither beside joulemark nor on PATH; build it, or give a "
        "command that loads the device in bursts and marks each as a region after --",
        simulated != nullptr && *simulated != '\0' ? "joulemark-sim" : "joulemark-train");
}

/// The host's folder of the one run there.
std::filesystem::path host_folder(const std::filesystem::path& results) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(results / run_format::runs_folder)) {
        if (entry.path().filename() == run_format::run_file) {
            return entry.path().parent_path();
        }
    }
    throw environment_error("the metered command left no run in {}", results.string());
}

json device_of(const json& run_json, const std::string& device) {
    for (const json& entry : store::json_array(run_json, "devices")) {
        if (store::json_text(entry, "device") == device) {
            return entry;
        }
    }
    return json::object();
}

/// What was found of one reading of one device, or why nothing was.
struct Finding {
    std::string device, reading;
    json timing = {};  ///< as it is kept
    std::int64_t regions = 0;
    std::string reason = {};
};

std::vector<Finding> counter_findings(const store::HostRecord& host) {
    struct Pooled {  // all kinds of a device share one fit
        const store::Attribution* fit = nullptr;
        std::int64_t regions = 0;
        double energy_j = 0, duration_s = 0;
    };
    std::map<std::string, Pooled> devices;
    for (const store::Attribution& fit : host.attributions) {
        Pooled& pooled = devices[fit.device];
        const auto n = static_cast<double>(fit.regions);
        pooled.fit = &fit;
        pooled.regions += fit.regions;
        pooled.energy_j += n * fit.mean_energy_j;
        pooled.duration_s += n * fit.mean_duration_s;
    }
    std::vector<Finding> all;
    for (const auto& [device, pooled] : devices) {
        Finding found{.device = device, .reading = "energy_j", .regions = pooled.regions};
        const double power_w = pooled.energy_j / pooled.duration_s;
        if (pooled.regions < meter::least_bursts) {
            found.reason = fmt::format("{} bursts are too few; the load has to mark at least {}",
                                       pooled.regions, meter::least_bursts);
        } else if (std::abs(power_w - pooled.fit->idle_power_w.value_or(0)) <
                   meter::least_contrast * power_w) {
            found.reason =
                "the counter does not follow the bursts; load this device, and leave it idle between them";
        } else {
            found.timing = {{"refresh_s", pooled.fit->refresh_s},
                            {"lag_s", pooled.fit->lag_s},
                            {"window_s", pooled.fit->window_s}};
        }
        all.push_back(std::move(found));
    }
    for (const store::Warning& warning : host.warnings) {
        if (warning.code == "short_regions") {
            const std::size_t colon = warning.text.find(": ");
            all.push_back({.device = warning.text.substr(0, colon),
                           .reading = "energy_j",
                           .reason = warning.text.substr(std::min(warning.text.size(), colon + 2))});
        }
    }
    return all;
}

std::vector<Finding> power_findings(const store::HostRecord& host, const std::filesystem::path& folder) {
    std::map<std::pair<std::string, Metric>, std::vector<meter::PowerReading>> readings;
    store::SampleReader reader(folder / run_format::gpu_file, sensors::File::gpu,
                               std::numeric_limits<std::int64_t>::max());
    store::SampleRow row;
    while (reader.next(row)) {
        for (std::size_t i = 0; i < row.values.size(); ++i) {
            const Metric metric = reader.metrics()[i];
            if (std::ranges::count(powers, metric) > 0 && !std::isnan(row.values[i])) {
                readings[{std::string(row.device), metric}].push_back(
                    {row.time_ns, row.values[i], row.read_ns});
            }
        }
    }
    std::vector<meter::RegionSpan> regions;
    for (const store::RegionRecord& region : host.regions) {
        if (!region.open && region.end_ns > region.start_ns &&
            !region.name.starts_with(run_format::own_prefix)) {
            regions.push_back({region.name, region.start_ns, region.end_ns});
        }
    }
    std::vector<Finding> all;
    for (const auto& [key, values] : readings) {
        Finding found{.device = key.first, .reading = std::string(sensors::info(key.second).name)};
        found.regions = std::ssize(regions);
        if (const auto timing = meter::power_timing(regions, values)) {
            found.timing = {{"refresh_s", timing->refresh_s},
                            {"lag_s", timing->lag_s},
                            {"lag_bound_s", timing->lag_bound_s},
                            {"window_s", timing->window_s},
                            {"window_bound_s", timing->window_bound_s},
                            {"low_w", timing->low_w},
                            {"high_w", timing->high_w},
                            {"residual_w", timing->residual_w}};
        } else {
            found.reason = timing.failure().reason + "; " + timing.failure().remedy;
        }
        all.push_back(std::move(found));
    }
    return all;
}

std::string ms_text(const json& timing, const char* name, const char* bound) {
    std::string text = fmt::format("{:.2f}", 1e3 * timing.at(name).get<double>());
    if (timing.contains(bound)) {
        text += fmt::format(" ± {:.2f}", 1e3 * timing.at(bound).get<double>());
    }
    return text;
}

}  // namespace

int calibrate(const std::vector<std::string>& command, bool as_json) {
    const Here here = look_around();
    if (!here.calibratable) {
        throw environment_error(
            "no sensor here can be calibrated: there is neither an energy counter nor the power of a GPU; "
            "joulemark doctor tells why");
    }
    const Scratch scratch;
    meter::RunOptions options;
    options.command = command.empty() ? default_load(here) : command;
    options.directory = scratch.path();
    options.name = "calibration";
    options.rate_hz = power_rate_hz;
    options.energy_rate_hz = energy_rate_hz;
    options.calibrated = false;
    options.quiet = true;
    if (const int status = meter::run(options); status != 0) {
        throw environment_error("the load for the calibration ended with status {}: run it alone to see why",
                                status);
    }
    const auto folder = host_folder(scratch.path());
    const store::HostRecord host =
        store::digest_host(folder, folder.parent_path().filename().string(), folder.filename().string())
            .record;
    std::vector<Finding> findings = counter_findings(host);
    std::ranges::move(power_findings(host, folder), std::back_inserter(findings));
    std::ranges::stable_sort(findings, {}, &Finding::device);

    const std::string now = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    std::map<std::string, json> by_uuid;
    json calibrations = json::array(), refused = json::array();
    report::Table table(
        {"device", "reading", "refresh ms", "lag ms", "window ms", "residual W", "regions", "kept for"});
    std::string reasons;
    bool simulated = false;
    for (Finding& found : findings) {
        const json device = device_of(host.run_json, found.device);
        const std::string uuid = store::json_text(device, "uuid");
        if (!found.reason.empty()) {
            refused.push_back(
                {{"device", found.device}, {"reading", found.reading}, {"reason", found.reason}});
            reasons += fmt::format("{}{} {}: {}", reasons.empty() ? "" : "; ", found.device, found.reading,
                                   found.reason);
            continue;
        }
        found.timing["measured_at"] = now;
        found.timing["simulated"] = store::json_flag(device, "simulated");
        simulated |= store::json_flag(device, "simulated");
        if (!uuid.empty()) {
            by_uuid[uuid][found.reading] = found.timing;
        }
        json row = found.timing;
        row.update({{"device", found.device},
                    {"uuid", uuid},
                    {"reading", found.reading},
                    {"regions", found.regions}});
        calibrations.push_back(row);
        table.add({found.device, found.reading, fmt::format("{:.2f}", 1e3 * row["refresh_s"].get<double>()),
                   ms_text(row, "lag_s", "lag_bound_s"), ms_text(row, "window_s", "window_bound_s"),
                   row.contains("residual_w") ? fmt::format("{:.1f}", row["residual_w"].get<double>()) : "-",
                   fmt::format("{}", found.regions), uuid.empty() ? "nothing: it has no UUID" : uuid});
    }
    if (calibrations.empty()) {
        throw environment_error(
            "nothing could be calibrated: the load must mark at least ten bursts of 0.2 to 2 s as regions, "
            "on a device with an energy counter or power readings{}{}",
            reasons.empty() ? "" : "; ", reasons);
    }
    for (const auto& [uuid, timings] : by_uuid) {
        meter::save_calibration(uuid, timings);
    }
    if (as_json) {
        fmt::print("{}\n", json{{"simulated", simulated},
                                {"calibrations", calibrations},
                                {"refused", refused},
                                {"file", meter::calibration_path().string()}}
                               .dump(2));
        return 0;
    }
    if (simulated) {
        fmt::print("The GPUs are simulated, and so is the timing of their sensors.\n\n");
    }
    fmt::print("{}Kept in {}\n", table.text(), meter::calibration_path().string());
    if (!reasons.empty()) {
        fmt::print("Not calibrated: {}\n", reasons);
    }
    return 0;
}

}  // namespace joulemark::cli
