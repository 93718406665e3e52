// SPDX-License-Identifier: Apache-2.0
#include "meter/run_document.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/run_format.h"
#include "launch/hostlist.h"
#include "meter/calibration_file.h"

namespace joulemark::meter {
namespace {

using nlohmann::json;

std::string file_name_of(std::string text) {
    std::ranges::replace_if(
        text, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '_');
    return text.empty() || text.front() == '.' ? "run" + text : text;
}

/// The value of a "Key : value" line of a /proc file.
std::string proc_value(const char* path, std::string_view key) {
    const std::string text = files::read(path).value_or("");
    const std::size_t line = text.find(key);
    if (line == std::string::npos) {
        return "";
    }
    const std::size_t value = text.find_first_not_of(" \t", text.find(':', line) + 1);
    return text.substr(value, text.find('\n', value) - value);
}

std::optional<std::int64_t> proc_kilobytes(const char* path, std::string_view key) {
    const std::string text = proc_value(path, key);
    const auto value = csv::integer(text.substr(0, text.find(' ')));
    return value ? std::optional(*value * 1024) : std::nullopt;
}

json number_or_text(const std::string& text) {
    if (const auto whole = csv::integer(text)) {
        return *whole;
    }
    const auto number = csv::number(text);
    return number ? json(*number) : json(text);
}

json factors(const RunOptions& options) {
    json factors = json::object();
    for (const auto& [name, value] : options.factors) {
        factors[name] = number_or_text(value);
    }
    if (options.power_cap_w) {
        factors["power_cap_w"] = *options.power_cap_w;
    }
    if (options.sm_clock_mhz) {
        factors["sm_clock_mhz"] = *options.sm_clock_mhz;
    }
    return factors;
}

json devices(const sensors::Machine& machine) {
    json list = json::array();
    constexpr std::array files{run_format::gpu_file, run_format::cpu_file, run_format::node_file};
    for (const sensors::Device& device : machine.devices) {
        list.push_back({{"device", device.id},
                        {"file", files[static_cast<std::size_t>(device.file)]},
                        {"name", device.name},
                        {"component", device.component},
                        {"index", device.index},
                        {"uuid", device.uuid},
                        {"pci_bus_id", device.pci_bus_id},
                        {"memory_bytes", or_null(device.memory_bytes)},
                        {"power_limit_w", or_null(device.power_limit_w)},
                        {"simulated", device.simulated}});
    }
    return list;
}

/// What calibration knows of these metrics of a device, by their names.
json known_timing(const json& calibrations, const std::string& uuid,
                  const std::vector<sensors::Metric>& metrics) {
    json known = json::object();
    const auto of_device = calibrations.find(uuid);
    if (of_device != calibrations.end() && of_device->is_object()) {
        for (const auto metric : metrics) {
            const std::string name(sensors::info(metric).name);
            if (const auto timing = of_device->find(name); timing != of_device->end()) {
                known[name] = *timing;
            }
        }
    }
    return known;
}

json sources(const RunOptions& options, const sensors::Machine& machine, double energy_rate_hz) {
    json list = json::array();
    const json calibrations = options.calibrated ? read_calibrations() : json::object();
    for (const auto& source : machine.sources) {
        const sensors::SourceInfo& info = source->info();
        json metrics = json::array();
        for (const auto metric : info.metrics) {
            metrics.push_back(sensors::info(metric).name);
        }
        list.push_back({{"source", info.name},
                        {"device", info.device},
                        {"metrics", metrics},
                        {"method", info.method},
                        {"scope", info.scope},
                        {"origin", info.origin},
                        {"period_s", 1 / (info.slow ? energy_rate_hz : options.rate_hz)},
                        {"native_period_s", or_null(info.native_period_s)},
                        {"accuracy_pct", or_null(info.accuracy_pct)},
                        {"accuracy_note", info.accuracy_note}});
        const auto device = std::ranges::find(machine.devices, info.device, &sensors::Device::id);
        if (device != machine.devices.end()) {
            if (json known = known_timing(calibrations, device->uuid, info.metrics); !known.empty()) {
                list.back()["calibration"] = std::move(known);
            }
        }
    }
    return list;
}

json unavailable(const sensors::Machine& machine) {
    json list = json::array();
    for (const sensors::SensorReport& report : machine.reports) {
        if (report.status == "unavailable") {
            list.push_back({{"name", report.name},
                            {"quantity", report.quantity},
                            {"scope", report.scope},
                            {"reason", report.reason},
                            {"remedy", report.remedy}});
        }
    }
    return list;
}

json allocation(const RunIdentity& identity, const sensors::Machine& machine) {
    json visible = json::array();
    for (const sensors::Device& device : machine.devices) {
        if (device.component == "gpu") {
            visible.push_back(device.id);
        }
    }
    return {{"gpus_on_node", machine.gpus_on_node},
            {"gpus_visible", visible},
            {"visibility_source", machine.visibility_source},
            {"job_id", identity.ranks.job_id},
            {"ranks_on_node", or_null(identity.ranks.local_world_size)}};
}

std::string text(const launch::Lookup& lookup, const char* name) {
    const char* value = lookup(name);
    return value == nullptr ? "" : value;
}

}  // namespace

std::string step_name(const launch::RankEnvironment& ranks, const launch::Lookup& lookup) {
    std::string name = ranks.launcher + "-" + ranks.job_id;
    std::string step = ranks.step;
    if (ranks.launcher != "slurm") {  // several may run inside one job or step
        for (const char* variable : {"PMIX_NAMESPACE", "PMI_JOBID", "TORCHELASTIC_RUN_ID"}) {
            const std::string launch = text(lookup, variable);
            if (!launch.empty() && launch != ranks.job_id) {
                step = launch;
                break;
            }
        }
    }
    return step.empty() ? name : name + "." + step;
}

RunIdentity identify(const RunOptions& options, const launch::RankEnvironment& ranks,
                     const launch::Lookup& lookup) {
    RunIdentity identity{.ranks = ranks, .expected_hosts = options.expected_hosts};
    const std::string program = std::filesystem::path(options.command.front()).filename();
    identity.name = options.name.empty() ? program : options.name;
    if (!options.run_id.empty()) {
        constexpr std::size_t longest = 200;  // of the 255 that a file system takes
        if (file_name_of(options.run_id) != options.run_id || options.run_id.size() > longest) {
            throw bad_input(
                "--run-id '{}' must be a file name of {} letters, digits, '-', '_' and '.' at most",
                options.run_id, longest);
        }
        identity.run = options.run_id;
    } else if (ranks.world_size > 1 && !ranks.job_id.empty()) {
        identity.run = fmt::format("{}-{}", identity.name, step_name(ranks, lookup));
    } else {
        identity.run =
            fmt::format("{}-{:%Y%m%dT%H%M%SZ}-{}", identity.name, fmt::gmtime(std::time(nullptr)), getpid());
    }
    identity.run = file_name_of(identity.run);
    if (identity.expected_hosts.empty() && ranks.world_size > ranks.local_world_size.value_or(1)) {
        // mpirun inside an allocation has no step of its own that would list the hosts.
        const std::string step = text(lookup, "SLURM_STEP_NODELIST");
        const bool own_step = ranks.launcher == "slurm" && !step.empty();
        identity.expected_hosts =
            launch::expand_hostlist(own_step ? step : text(lookup, "SLURM_JOB_NODELIST"));
    }
    if (identity.expected_hosts.empty()) {
        identity.expected_hosts = {ranks.node};
    }
    return identity;
}

json run_document(const RunOptions& options, const RunIdentity& identity, const sensors::Machine& machine,
                  double energy_rate_hz, const json& controls) {
    utsname system{};
    uname(&system);
    std::error_code no_folder;
    const std::int64_t now_ns = machine.clock->now_ns();
    json study = nullptr;
    if (options.study) {
        study = {{"name", options.study->name},
                 {"repeat", options.study->repeat},
                 {"position", options.study->position}};
    }
    return {
        {"schema", run_format::schema},
        {"joulemark_version", JOULEMARK_VERSION},
        {"run", identity.run},
        {"name", identity.name},
        {"host", identity.ranks.node},
        {"boot_id", files::read_line("/proc/sys/kernel/random/boot_id").value_or("")},
        {"expected_hosts", identity.expected_hosts},
        {"command", options.command},
        {"cwd", std::filesystem::current_path(no_folder).string()},
        {"tags", options.tags},
        {"study", study},
        {"factors", factors(options)},
        {"start_ns", now_ns},
        {"anchor", {{"monotonic_ns", now_ns}, {"realtime_ns", machine.clock->realtime_ns()}}},
        {"clock", machine.clock->simulated() ? "simulated" : "monotonic"},
        {"simulated", machine.simulated},
        {"rate_hz", options.rate_hz},
        {"energy_rate_hz", energy_rate_hz},
        {"allocation", allocation(identity, machine)},
        {"software",
         {{"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"driver", machine.driver_version}}},
        {"hardware",
         {{"cpu_model", proc_value("/proc/cpuinfo", "model name")},
          {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_bytes", or_null(proc_kilobytes("/proc/meminfo", "MemTotal"))}}},
        {"devices", devices(machine)},
        {"sources", sources(options, machine, energy_rate_hz)},
        {"unavailable", unavailable(machine)},
        {"controls", controls},
        {"warnings", machine.warnings},
    };
}

OwnCost own_cost() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto in_seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    // Not ru_maxrss: it starts from what the process had before it became this program.
    return {.cpu_s = in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime),
            .max_rss_bytes = proc_kilobytes("/proc/self/status", "VmHWM").value_or(0)};
}

json end_document(const RunEnd& end, const sensors::Machine& machine) {
    json counters = json::array();
    for (const auto& source : machine.sources) {
        const sensors::SourceInfo& info = source->info();
        const sensors::CounterEvents events = source->events();
        const bool counts_something = std::ranges::any_of(info.metrics, [](sensors::Metric metric) {
            return sensors::info(metric).behaviour == sensors::Behaviour::counter;
        });
        if (counts_something || events.failed_reads > 0) {
            counters.push_back({{"source", info.name},
                                {"device", info.device},
                                {"wraps", events.wraps},
                                {"resets", events.resets},
                                {"unknowable", events.unknowable},
                                {"frozen", events.frozen},
                                {"failed_reads", events.failed_reads}});
        }
    }
    const auto in_seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    json failed_ranks = json::array();
    for (const auto& [rank, exit_status] : end.failed_ranks) {
        failed_ranks.push_back({{"rank", rank}, {"exit_status", or_null(exit_status)}});
    }
    const ChildEnd& command = end.command;
    const auto& statistics = end.statistics;
    return {
        {"end_ns", end.end_ns},
        {"exit_status", command.exit_status},
        {"signal", or_null(command.signal)},
        {"failed_ranks", failed_ranks},
        {"child",
         {{"user_s", in_seconds(command.usage.ru_utime)},
          {"system_s", in_seconds(command.usage.ru_stime)},
          {"max_rss_bytes", command.usage.ru_maxrss * 1024}}},
        {"marks", {{"refused", end.marks.refused}, {"lost", end.marks.lost}}},
        {"meter",
         {{"cpu_s", end.cost.cpu_s},
          {"driver_s", statistics ? json(statistics->driver_s) : json(nullptr)},
          {"max_rss_bytes", end.cost.max_rss_bytes},
          {"rows", end.rows.rows},
          {"lost", end.rows.lost},
          {"late", statistics ? json(statistics->late) : json(nullptr)},
          {"jitter_s", statistics ? json(statistics->jitter_s) : json::object()},
          {"achieved_hz", statistics ? json(statistics->achieved_hz) : json::object()}}},
        {"counters", counters},
        {"warnings", end.warnings},
    };
}

}  // namespace joulemark::meter
