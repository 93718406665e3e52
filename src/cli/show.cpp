// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/results.h"
#include "core/run_format.h"
#include "report/terminal.h"
#include "store/host_digest.h"
#include "store/load.h"
#include "store/summary.h"

namespace joulemark::cli {
namespace {

using nlohmann::json;
using report::duration_text;
using report::energy_text;
using report::number_text;
using report::Table;
using store::RegionSummary;
using store::RunRecord;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_regions = 40, most_devices = 16, spark_width = 60;

std::string percent(std::optional<double> value) {
    return value ? fmt::format("{:.1f}", *value) : "-";
}

std::string number(std::optional<double> value) {
    return number_text(value.value_or(nan));
}

std::string energy(std::optional<double> value) {
    return energy_text(value.value_or(nan));
}

std::string status_text(const RunRecord& run, const std::optional<RegionSummary>& whole) {
    return run.status + (whole && whole->sum.simulated() ? ", simulated" : "") +
           (whole && whole->sum.methods().contains("estimated") ? ", estimated" : "");
}

/// The energy, or why there is none.
std::string energy(const RegionSummary& region) {
    return region.energy_j ? energy_text(*region.energy_j, region.energy_bound_j.value_or(nan)) : region.no_total;
}

json to_json(const RegionSummary& summary) {
    json object{{"name", summary.name},
                {"index", summary.index},
                {"hosts", summary.hosts},
                {"gpus", summary.gpus},
                {"open", summary.open},
                {"energy_by_component_j", summary.sum.by_component()},
                {"simulated", summary.sum.simulated()}};
    const auto set = [&](const char* key, const std::optional<double>& value) {
        if (value) {
            object[key] = *value;
        }
    };
    set("wall_time_s", summary.wall_time_s);
    set("samples", summary.samples);
    set("updates", summary.updates);
    set("tokens", summary.tokens);
    set("loss", summary.loss.value());
    set("energy_j", summary.energy_j);
    set("energy_bound_j", summary.energy_bound_j);
    set("mean_power_w", summary.mean_power_w);
    set("joule_per_sample", summary.joule_per_sample);
    set("gpu_memory_util_pct", summary.sum.gpu_memory_util_pct());
    set("gpu_busy_pct", summary.sum.gpu_busy_pct());
    set("sm_util_pct", summary.sum.sm_util_pct());
    if (summary.energy_j) {
        object["energy_components"] = summary.energy_components;
        object["energy_method"] = summary.energy_method;
    } else {
        object["no_total"] = summary.no_total;
    }
    if (summary.quality.value()) {
        object["quality"] = {{"name", summary.quality_name},
                             {"value", *summary.quality.value()},
                             {"direction", summary.quality_direction}};
    }
    return object;
}

json to_json(const RunRecord& run) {
    const auto summary = store::summarise_run(run);
    json received = json::array();
    for (const auto& host : run.hosts) {
        received.push_back(host.host);
    }
    json object{{"run", run.run},         {"status", run.status},
                {"factors", run.factors}, {"expected_hosts", run.expected_hosts},
                {"hosts", received},      {"epochs", summary.epochs}};
    if (summary.command) {
        object["command"] = to_json(*summary.command);
    }
    return object;
}

int show_runs(const store::Database& database, bool as_json) {
    Table table({"run", "status", "factors", "hosts", "time", "energy", "of", "mean W", "epochs"});
    json all = json::array();
    store::for_each_run(database, [&](const RunRecord& run) {
        if (as_json) {
            all.push_back(to_json(run));
            return;
        }
        const auto summary = store::summarise_run(run);
        const RegionSummary whole = summary.command.value_or(RegionSummary{});
        table.add({run.run, status_text(run, whole), store::factors_text(run.factors),
                   fmt::format("{}/{}", run.hosts.size(), run.expected_hosts.size()),
                   duration_text(whole.wall_time_s.value_or(nan)), energy(whole.energy_j),
                   whole.energy_j ? whole.energy_components : whole.no_total, number(whole.mean_power_w),
                   std::to_string(summary.epochs)});
    });
    if (as_json) {
        fmt::print("{}\n", json{{"runs", all}}.dump(2));
    } else if (table.empty()) {
        fmt::print("no runs yet\n");
    } else {
        fmt::print("{}", table.text());
    }
    return 0;
}

void print_identity(const RunRecord& run) {
    const auto whole = store::summarise_run(run).command;
    fmt::print("{}: {}\n", run.run, status_text(run, whole));
    const auto line = [](const char* name, const std::string& text) {
        if (!text.empty()) {
            fmt::print("  {:<9} {}\n", name, text);
        }
    };
    const json& first = run.hosts.front().run_json;
    std::string command;
    for (const json& word : store::json_array(first, "command")) {
        command += (command.empty() ? "" : " ") + store::factor_text(word);
    }
    line("command", command);
    line("factors", store::factors_text(run.factors));
    std::vector<std::string> received;
    for (const auto& host : run.hosts) {
        received.push_back(host.host);
    }
    line("hosts", fmt::format("{}", fmt::join(received, ", ")));
    line("missing", fmt::format("{}", fmt::join(store::missing_hosts(run), ", ")));
    for (const auto& host : run.hosts) {
        if (!host.end_json) {
            line("cut", fmt::format("{} wrote no end: it was killed, or is still running", host.host));
            continue;
        }
        if (const auto status = store::json_number(*host.end_json, "exit_status"); status && *status != 0) {
            line("exit", fmt::format("status {} on {}", *status, host.host));
        }
        for (const auto& rank : store::json_array(*host.end_json, "failed_ranks")) {
            const auto status = store::json_number(rank, "exit_status");
            line("exit",
                 fmt::format("{} of rank {} on {}", status ? fmt::format("status {}", *status) : "not told",
                             store::json_number(rank, "rank").value_or(0), host.host));
        }
    }
    std::string software;
    if (const auto found = first.find("software"); found != first.end() && found->is_object()) {
        for (const auto& [key, value] : found->items()) {
            if (const std::string text = store::factor_text(value); !text.empty() && !value.is_null()) {
                software += fmt::format("{}{} {}", software.empty() ? "" : ", ", key, text);
            }
        }
    }
    line("software", software);
    if (whole && whole->energy_j) {
        line("energy",
             fmt::format("{} in {}, {} ({}{})", energy(*whole),
                         duration_text(whole->wall_time_s.value_or(nan)), whole->energy_components,
                         whole->energy_method, whole->sum.simulated() ? ", simulated" : ""));
    } else if (whole) {
        std::vector<std::string> measured;
        for (const auto& [component, energy_j] : whole->sum.by_component()) {
            measured.push_back(fmt::format("{} of {}", energy_text(energy_j), component));
        }
        line("energy", fmt::format("no total: {}{}{}", whole->no_total, measured.empty() ? "" : "; measured: ",
                                   fmt::join(measured, ", ")));
    }
}

void print_devices(const RunRecord& run) {
    Table table({"host", "device", "name", "energy", "method", "mean W", "max W", "busy %", "SM %",
                 "memory %", "covered %"});
    std::size_t left_out = 0;
    for (const auto& host : run.hosts) {
        std::map<std::string, std::string> names;
        for (const json& device : store::json_array(host.run_json, "devices")) {
            names[store::json_text(device, "device")] = store::json_text(device, "name");
        }
        for (const auto& region : host.regions) {
            if (region.name != run_format::command_region) {
                continue;
            }
            for (std::size_t i = 0; i < region.devices.size(); ++i) {
                if (i >= most_devices) {
                    ++left_out;
                    continue;
                }
                const auto& device = region.devices[i];
                const double duration = region.duration_s();
                table.add({host.host, device.device, names[device.device], energy(device.energy_j),
                           (device.energy_j ? device.energy_method : "not measured") +
                               std::string(device.simulated ? ", simulated" : ""),
                           number(device.mean_power_w), number(device.max_power_w),
                           percent(device.gpu_busy_pct ? device.gpu_busy_pct : device.cpu_busy_pct),
                           percent(device.sm_util_pct), percent(device.gpu_memory_util_pct),
                           percent(duration > 0 ? std::optional(100 * device.covered_s / duration)
                                                : std::nullopt)});
            }
        }
    }
    fmt::print("\nDevices, over the whole command\n{}", table.text());
    if (left_out > 0) {
        fmt::print("... and {} more devices\n", left_out);
    }
}

void print_regions(const RunRecord& run) {
    Table table({"region", "time", "samples", "loss", "quality", "energy", "mean W", "J/sample", "busy %",
                 "SM %", "memory %"});
    std::size_t rows = 0, left_out = 0;
    for (const RegionSummary& region : store::summarise_regions(run)) {
        if (region.name == run_format::command_region) {
            continue;
        }
        if (++rows > most_regions) {
            ++left_out;
            continue;
        }
        const auto quality = region.quality.value();
        table.add(
            {fmt::format("{} {}{}", region.name, region.index, region.open ? " (open)" : ""),
             duration_text(region.wall_time_s.value_or(nan)), number(region.samples),
             number(region.loss.value()),
             quality ? fmt::format("{} {}", region.quality_name, number_text(*quality)) : "-", energy(region),
             number(region.mean_power_w), number(region.joule_per_sample),
             percent(region.sum.gpu_busy_pct()), percent(region.sum.sm_util_pct()),
             percent(region.sum.gpu_memory_util_pct())});
    }
    if (table.empty()) {
        fmt::print("\nThe command marked no regions\n");
        return;
    }
    fmt::print("\nRegions, all hosts\n{}", table.text());
    if (left_out > 0) {
        fmt::print("... and {} more regions: joulemark export writes them all\n", left_out);
    }
}

/// The bins' means on an even grid of time, so that a gap is seen as one.
std::vector<double> on_grid(const store::Series& series) {
    const std::int64_t begin = series.time_ns.front();
    const std::int64_t span = series.time_ns.back() - begin;
    const std::size_t cells = std::min(spark_width, series.time_ns.size());
    std::vector<double> sums(cells, 0), counts(cells, 0);
    for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
        if (!std::isnan(series.mean[i])) {
            const double place =
                span > 0 ? static_cast<double>(series.time_ns[i] - begin) / static_cast<double>(span) : 0;
            const auto cell =
                std::min(cells - 1, static_cast<std::size_t>(place * static_cast<double>(cells)));
            sums[cell] += series.mean[i];
            counts[cell] += 1;
        }
    }
    for (std::size_t cell = 0; cell < cells; ++cell) {
        sums[cell] /= counts[cell];  // NaN where there is nothing
    }
    return sums;
}

void print_series(const std::vector<store::Series>& all) {
    static constexpr std::array power{"power_instant_w", "power_w", "power_average_w", "counter_power_w"};
    static constexpr std::array busy{"sm_util_pct", "busy_pct"};
    std::map<std::pair<std::string, std::string>, std::map<std::string, const store::Series*>> devices;
    std::vector<std::pair<std::string, std::string>> order;
    for (const store::Series& series : all) {
        const std::pair key{series.host, series.device};
        if (!devices.contains(key)) {
            order.push_back(key);
        }
        devices[key][series.metric] = &series;
    }
    Table table({"host", "device", "series", "least", "most", "over time"});
    for (std::size_t i = 0; i < std::min(order.size(), most_devices); ++i) {
        const auto& metrics = devices[order[i]];
        const auto add_first = [&](auto names) {
            for (const char* name : names) {
                if (const auto found = metrics.find(name); found != metrics.end()) {
                    const store::Series& series = *found->second;
                    const auto cells = on_grid(series);
                    double least = nan, most = nan;
                    for (std::size_t bin = 0; bin < series.mean.size(); ++bin) {
                        least = std::fmin(least, series.minimum[bin]);
                        most = std::fmax(most, series.maximum[bin]);
                    }
                    table.add({order[i].first, order[i].second, name, number_text(least), number_text(most),
                               report::sparkline(cells, cells.size())});
                    return;
                }
            }
        };
        add_first(power);
        add_first(busy);
    }
    if (!table.empty()) {
        fmt::print("\nSeries\n{}", table.text());
    }
    if (order.size() > most_devices) {
        fmt::print("... and {} more devices\n", order.size() - most_devices);
    }
}

/// Each sentence once, with the hosts it holds for.
void print_sentences(const char* title, const std::map<std::string, std::vector<std::string>>& sentences) {
    if (!sentences.empty()) {
        fmt::print("\n{}\n", title);
    }
    for (const auto& [sentence, hosts] : sentences) {
        fmt::print("  {}: {}\n", hosts.size() == 1 ? hosts.front() : fmt::format("{} hosts", hosts.size()),
                   sentence);
    }
}

void print_reservations(const RunRecord& run) {
    std::map<std::string, std::vector<std::string>> missing, warnings;
    for (const auto& host : run.hosts) {
        for (const json& one : store::json_array(host.run_json, "unavailable")) {
            const std::string remedy = store::json_text(one, "remedy");
            missing[fmt::format("{} ({}): {}{}", store::json_text(one, "name"),
                                store::json_text(one, "quantity"), store::json_text(one, "reason"),
                                remedy.empty() ? "" : "; " + remedy)]
                .push_back(host.host);
        }
        for (const auto& warning : host.warnings) {
            warnings[warning.text].push_back(host.host);
        }
    }
    print_sentences("Not measured", missing);
    print_sentences("Warnings", warnings);
}

/// What metering cost on each host, and how well it kept its period.
void print_meter(const RunRecord& run) {
    Table table({"host", "rows", "lost", "late", "samples/s", "jitter ms", "CPU", "in drivers", "memory"});
    for (const auto& host : run.hosts) {
        const json meter = host.end_json ? host.end_json->value("meter", json::object()) : json::object();
        if (meter.empty()) {
            continue;
        }
        double rate_hz = nan, jitter_s = nan;
        for (const json& source : store::json_array(host.run_json, "sources")) {
            if (const auto rate = store::achieved_hz(*host.end_json, source)) {
                rate_hz = std::fmax(rate_hz, *rate);
            }
        }
        const json jitters = meter.value("jitter_s", json::object());
        for (const auto& [source, jitter] : jitters.items()) {
            jitter_s = std::fmax(jitter_s, jitter.is_number() ? jitter.get<double>() : nan);
        }
        const auto bytes = store::json_number(meter, "max_rss_bytes");
        table.add({host.host, number(store::json_number(meter, "rows")),
                   number(store::json_number(meter, "lost")), number(store::json_number(meter, "late")),
                   number_text(rate_hz), number_text(1e3 * jitter_s),
                   duration_text(store::json_number(meter, "cpu_s").value_or(nan)),
                   duration_text(store::json_number(meter, "driver_s").value_or(nan)),
                   bytes ? fmt::format("{:.1f} MiB", *bytes / (1 << 20)) : "-"});
    }
    if (!table.empty()) {
        fmt::print("\nMeter\n{}", table.text());
    }
}

int show_run(const store::Database& database, const std::string& name, bool as_json) {
    const RunRecord run = store::load_run(database, name);
    if (!as_json) {
        print_identity(run);
        print_devices(run);
        print_regions(run);
        print_series(store::load_series(database, name));
        print_meter(run);
        print_reservations(run);
        return 0;
    }
    json object = to_json(run);
    object["regions"] = json::array();
    for (const RegionSummary& region : store::summarise_regions(run)) {
        object["regions"].push_back(to_json(region));
    }
    object["warnings"] = json::array();
    for (const auto& host : run.hosts) {
        for (const auto& warning : host.warnings) {
            object["warnings"].push_back(
                {{"host", host.host}, {"code", warning.code}, {"text", warning.text}});
        }
        object["unavailable"][host.host] = store::json_array(host.run_json, "unavailable");
    }
    fmt::print("{}\n", object.dump(2));
    return 0;
}

}  // namespace

int show_command(const Arguments& arguments) {
    CLI::App app{"Lists the runs of a results directory, or shows one run.", "show"};
    std::string dir, run;
    bool as_json = false, quiet = false;
    app.add_option("DIR", dir, "Results directory")->required();
    app.add_option("RUN", run, "Name of a run, or the beginning of one");
    app.add_flag("--json", as_json, "One JSON document on stdout");
    add_quiet(app, quiet);
    app.footer("Example: joulemark show joulemark-results");
    if (!parse(app, arguments)) {
        return 0;
    }
    const store::Merged merged = open_results(dir, quiet);
    return run.empty() ? show_runs(merged.database, as_json)
                       : show_run(merged.database, store::find_run(merged.database, run), as_json);
}

}  // namespace joulemark::cli
