// SPDX-License-Identifier: Apache-2.0
//
// joulemark doctor: what can be measured and controlled here, or why not and what to do about it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/calibrate.h"
#include "cli/commands.h"
#include "core/json.h"
#include "report/terminal.h"
#include "sensors/catalog.h"
#include "sensors/probe.h"
#include "vendor/nvml.h"

namespace joulemark::cli {
namespace {

using sensors::Machine;
using sensors::SensorReport;

/// A GPU setting, as far as the driver tells without changing anything.
struct ControlReport {
    std::string name;  // "power_cap_w gpu0"
    std::string device;
    std::string unit;
    std::optional<double> minimum = {}, maximum = {}, current = {}, standard = {};
    std::string status = {};  // "permitted" | "not permitted" | "unavailable"
    std::string reason = {};
    std::string remedy = {};
};

struct LauncherReport {
    std::string name;
    std::string status;  // "available" | "unavailable"
    std::string reason;
};

void set_permission(ControlReport& control) {
    if (geteuid() == 0) {
        control.status = "permitted";
        control.reason = "running as root; a container or the driver may still refuse it";
    } else {
        control.status = "not permitted";
        control.reason = "changing it needs root";
        control.remedy = "run as root, or ask the administrator for a prolog that sets it";
    }
}

ControlReport power_cap(const nvml::Device& gpu, const std::string& device) {
    ControlReport control{.name = "power_cap_w " + device, .device = device, .unit = "W"};
    const auto range = gpu.power_limit_range_w();
    if (!range) {
        const Failure failure = nvml::explain(range.status);
        control.status = "unavailable";
        control.reason = failure.reason;
        control.remedy = failure.remedy;
        return control;
    }
    control.minimum = range.value.first;
    control.maximum = range.value.second;
    control.current = gpu.power_limit_w().optional();
    control.standard = gpu.power_limit_default_w().optional();
    set_permission(control);
    return control;
}

ControlReport sm_clock(const nvml::Device& gpu, const std::string& device) {
    ControlReport control{.name = "sm_clock_mhz " + device, .device = device, .unit = "MHz"};
    const auto clocks = gpu.supported_sm_clocks_mhz();  // descending
    if (!clocks || clocks.value.empty()) {
        control.status = "unavailable";
        control.reason = nvml::explain(clocks.status).reason;
        return control;
    }
    control.minimum = clocks.value.back();
    control.maximum = clocks.value.front();
    control.standard = control.maximum;
    set_permission(control);
    return control;
}

std::vector<ControlReport> find_controls() {
    std::vector<ControlReport> controls;
    const auto library = nvml::Library::open();
    if (!library) {
        return controls;
    }
    for (const nvml::Device& gpu : (*library)->devices().devices) {
        const std::string device = fmt::format("gpu{}", gpu.index());
        controls.push_back(power_cap(gpu, device));
        controls.push_back(sm_clock(gpu, device));
    }
    return controls;
}

/// The first line that `program --version` prints; nothing when it cannot be run.
std::optional<std::string> version_of(const std::string& program) {
    std::FILE* output = popen((program + " --version 2>/dev/null").c_str(), "r");
    if (output == nullptr) {
        return std::nullopt;
    }
    std::array<char, 256> line{};
    const bool any = std::fgets(line.data(), line.size(), output) != nullptr;
    const int status = pclose(output);
    if (!any || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return std::nullopt;
    }
    std::string text(line.data());
    text.erase(text.find_last_not_of("\r\n ") + 1);
    return text;
}

std::vector<LauncherReport> find_launchers() {
    std::vector<LauncherReport> launchers{{"local", "available", "starts the ranks on this machine itself"}};
    const auto mpirun = version_of("mpirun");
    launchers.push_back(mpirun ? LauncherReport{"mpirun", "available", *mpirun}
                               : LauncherReport{"mpirun", "unavailable", "mpirun is not in PATH"});
    const auto srun = version_of("srun");
    if (!srun) {
        launchers.push_back({"slurm", "unavailable", "srun is not in PATH"});
    } else if (const char* job = std::getenv("SLURM_JOB_ID"); job != nullptr) {
        launchers.push_back({"slurm", "available", fmt::format("{}, inside job {}", *srun, job)});
    } else {
        launchers.push_back({"slurm", "available", *srun + ", outside any allocation"});
    }
    return launchers;
}

nlohmann::json to_json(const Machine& machine, const std::vector<ControlReport>& controls,
                       const std::vector<LauncherReport>& launchers) {
    nlohmann::json document{
        {"sensors", nlohmann::json::array()},   {"controls", nlohmann::json::array()},
        {"launchers", nlohmann::json::array()}, {"warnings", machine.warnings},
        {"simulated", machine.simulated},       {"driver_version", machine.driver_version},
        {"gpus_on_node", machine.gpus_on_node}, {"visibility_source", machine.visibility_source}};
    for (const SensorReport& sensor : machine.reports) {
        document["sensors"].push_back({{"name", sensor.name},
                                       {"quantity", sensor.quantity},
                                       {"scope", sensor.scope},
                                       {"method", sensor.method},
                                       {"unit", sensor.unit},
                                       {"status", sensor.status},
                                       {"reason", sensor.reason},
                                       {"remedy", sensor.remedy},
                                       {"update_period_s", or_null(sensor.update_period_s)},
                                       {"read_latency_s", or_null(sensor.read_latency_s)}});
    }
    for (const ControlReport& control : controls) {
        document["controls"].push_back({{"name", control.name},
                                        {"device", control.device},
                                        {"unit", control.unit},
                                        {"minimum", or_null(control.minimum)},
                                        {"maximum", or_null(control.maximum)},
                                        {"current", or_null(control.current)},
                                        {"default", or_null(control.standard)},
                                        {"status", control.status},
                                        {"reason", control.reason},
                                        {"remedy", control.remedy}});
    }
    for (const LauncherReport& launcher : launchers) {
        document["launchers"].push_back(
            {{"name", launcher.name}, {"status", launcher.status}, {"reason", launcher.reason}});
    }
    return document;
}

std::string time_text(const std::optional<double>& s) {
    if (!s) {
        return "-";
    }
    return *s < 1e-3 ? fmt::format("{:.3g} us", *s * 1e6) : fmt::format("{:.3g} ms", *s * 1e3);
}

/// Sensors that differ only in their device, "nvml gpu0" and "nvml gpu1", in one row.
struct Row {
    SensorReport report;
    std::string sensor;   // "nvml"
    std::string devices;  // "gpu0 gpu1"
};

std::vector<Row> grouped(const std::vector<SensorReport>& reports, bool used) {
    std::vector<Row> rows;
    for (const SensorReport& report : reports) {
        if ((report.status == "used") != used) {
            continue;
        }
        const std::size_t space = report.name.find(' ');
        const std::string sensor = report.name.substr(0, space);
        const std::string device = space == std::string::npos ? "" : report.name.substr(space + 1);
        const auto same = std::ranges::find_if(rows, [&](const Row& row) {
            const SensorReport& r = row.report;
            return row.sensor == sensor && r.quantity == report.quantity && r.scope == report.scope &&
                   r.method == report.method && r.status == report.status && r.reason == report.reason;
        });
        if (same == rows.end()) {
            rows.push_back({report, sensor, device});
            continue;
        }
        same->devices += " " + device;
        // The slowest of them stands for all.
        same->report.update_period_s = std::max(same->report.update_period_s, report.update_period_s);
        same->report.read_latency_s = std::max(same->report.read_latency_s, report.read_latency_s);
    }
    return rows;
}

void print_sensors(const Machine& machine) {
    report::Table table(
        {"sensor", "device", "quantity", "unit", "scope", "method", "refresh", "read", "note"});
    for (const Row& row : grouped(machine.reports, true)) {
        const SensorReport& r = row.report;
        table.add({row.sensor, row.devices, r.quantity, r.unit, r.scope, r.method,
                   time_text(r.update_period_s), time_text(r.read_latency_s), r.reason});
    }
    fmt::print("Sensors in use\n");
    fmt::print("{}\n", table.empty() ? "none\n" : table.text());

    const std::vector<Row> others = grouped(machine.reports, false);
    if (!others.empty()) {
        fmt::print("Not used\n");
        for (const Row& row : others) {
            fmt::print("  {}{}{}, {}: {}{}\n", row.sensor, row.devices.empty() ? "" : " ", row.devices,
                       row.report.quantity,
                       row.report.status == "available" ? "" : "N/A: ", row.report.reason);
            if (!row.report.remedy.empty()) {
                fmt::print("      {}\n", row.report.remedy);
            }
        }
        fmt::print("\n");
    }
}

void print_controls(const std::vector<ControlReport>& controls) {
    report::Table table({"control", "from", "to", "now", "default", "unit", "status", "note"});
    const auto text = [](const std::optional<double>& value) {
        return value ? report::number_text(*value) : std::string("-");
    };
    for (const ControlReport& c : controls) {
        table.add({c.name, text(c.minimum), text(c.maximum), text(c.current), text(c.standard), c.unit,
                   c.status, c.reason});
    }
    fmt::print("Controls\n{}\n", table.empty() ? "none: no GPU that a driver can set\n" : table.text());
}

}  // namespace

int doctor_command(const Arguments& arguments) {
    CLI::App app(
        "Lists every sensor and control of this machine, or why it is missing and what to do about it.",
        "doctor");
    app.footer("Example: joulemark doctor --json | jq '.sensors[] | select(.status == \"unavailable\")'");
    bool json = false;
    sensors::Options options;
    options.all_devices = true;
    std::string root = "/";
    app.add_flag("--json", json, "One JSON document on stdout");
    app.add_option("--root", root, "For testing: read /proc and /sys below DIR")
        ->type_name("DIR")
        ->check(CLI::ExistingDirectory);
    bool calibrated = false;
    app.add_flag(
        "--calibrate", calibrated,
        "Measure refresh, lag and averaging window of the GPUs' energy counters and power readings, and keep "
        "them for later runs: under joulemark-train square-wave, or a load that marks its bursts, given "
        "after --");
    if (!parse(app, arguments)) {
        return 0;
    }
    if (calibrated) {
        return calibrate(arguments.child, json);
    }
    options.root = root;
    Machine machine = sensors::discover(options);
    sensors::probe_reports(machine);
    const std::vector<ControlReport> controls = find_controls();
    const std::vector<LauncherReport> launchers = find_launchers();
    if (json) {
        fmt::print("{}\n", to_json(machine, controls, launchers).dump(2));
        return 0;
    }
    if (machine.simulated) {
        fmt::print("The GPUs are simulated, and so is every number of theirs.\n\n");
    }
    print_sensors(machine);
    print_controls(controls);
    fmt::print("Launchers\n");
    for (const LauncherReport& launcher : launchers) {
        fmt::print("  {}: {}{}\n", launcher.name,
                   launcher.status == "available" ? "" : "N/A: ", launcher.reason);
    }
    if (!machine.warnings.empty()) {
        fmt::print("\nWarnings\n");
        for (const std::string& warning : machine.warnings) {
            fmt::print("  {}\n", warning);
        }
    }
    return 0;
}

}  // namespace joulemark::cli
