// SPDX-License-Identifier: Apache-2.0
#include "store/load.h"

#include <utility>

#include "store/copies.h"

namespace joulemark::store {
namespace {

using nlohmann::json;

/// The statements are prepared once and stepped through ranges of their primary keys.
class Loader {
  public:
    /// All runs, or the one called `only`.
    explicit Loader(const Database& database, const std::string& only = "", Share share = {})
        : runs_(database.prepare("SELECT run_id, run, status, factors, config FROM runs "
                                 "WHERE (?1 = '' OR run = ?1) AND run_id % ?2 = ?3 ORDER BY run")),
          expected_(database.prepare("SELECT host FROM expected_hosts WHERE run_id = ? ORDER BY host")),
          hosts_(database.prepare(
              "SELECT host_id, host, run_json, end_json FROM hosts WHERE run_id = ? ORDER BY host")),
          devices_(database.prepare(
              "SELECT device, component, simulated FROM devices WHERE host_id = ? ORDER BY device_number")),
          warnings_(database.prepare("SELECT code, text FROM warnings WHERE host_id = ? ORDER BY rowid")),
          attributions_(database.prepare(
              "SELECT device, name, regions, mean_duration_s, mean_energy_j, mean_bound_j, idle_power_w, "
              "refresh_s, lag_s, window_s, calibrated FROM attributions WHERE host_id = ? ORDER BY rowid")),
          regions_(database.prepare(
              "SELECT name, region_index, start_ns, end_ns, ranks, open, samples, updates, tokens, loss, "
              "quality_name, "
              "quality, quality_direction, source FROM regions WHERE host_id = ? ORDER BY region_number")),
          metrics_(database.prepare(
              "SELECT region_number, device_number, energy_method, energy_j, energy_bound_j, "
              "energy_counter_j, "
              "energy_integrated_j, energy_protocol_j, mean_power_w, max_power_w, gpu_memory_util_pct, "
              "gpu_memory_max_pct, gpu_memory_busy_pct, gpu_busy_pct, sm_util_pct, sm_clock_mhz, "
              "temperature_c, "
              "power_limit_w, throttled_pct, cpu_busy_pct, process_cpu_s, covered_s, samples, power_p5_w, "
              "power_median_w, power_p95_w, power_sd_w, power_fluctuation_hz, power_at_limit_pct, idle_pct, "
              "mean_power_1hz_w "
              "FROM region_devices WHERE host_id = ? ORDER BY region_number, device_number")) {
        runs_.bind(only, share.of, share.number);
    }

    bool next(RunRecord& run) {
        if (!runs_.step()) {
            return false;
        }
        const std::int64_t run_id = runs_.integer(0);
        run.run = runs_.text(1);
        run.status = runs_.text(2);
        run.factors = runs_.json(3);
        run.config = runs_.json(4);
        for (expected_.bind(run_id); expected_.step();) {
            run.expected_hosts.emplace_back(expected_.text(0));
        }
        for (hosts_.bind(run_id); hosts_.step();) {
            run.hosts.push_back(host(run.run));
        }
        drop_copied_hosts(run);
        return true;
    }

  private:
    HostRecord host(const std::string& run) {
        const std::int64_t host_id = hosts_.integer(0);
        HostRecord host;
        host.host = hosts_.text(1);
        host.run_json = hosts_.json(2);
        if (!hosts_.is_null(3)) {
            host.end_json = hosts_.json(3);
        }
        for (warnings_.bind(host_id); warnings_.step();) {
            host.warnings.push_back({std::string(warnings_.text(0)), std::string(warnings_.text(1))});
        }
        for (regions_.bind(host_id); regions_.step();) {
            host.regions.push_back(region(run, host.host));
        }
        for (attributions_.bind(host_id); attributions_.step();) {
            host.attributions.push_back({.device = std::string(attributions_.text(0)),
                                         .name = std::string(attributions_.text(1)),
                                         .regions = attributions_.integer(2),
                                         .mean_duration_s = attributions_.real(3),
                                         .mean_energy_j = attributions_.real(4),
                                         .mean_bound_j = attributions_.real(5),
                                         .idle_power_w = attributions_.optional_real(6),
                                         .refresh_s = attributions_.real(7),
                                         .lag_s = attributions_.real(8),
                                         .window_s = attributions_.real(9),
                                         .calibrated = attributions_.integer(10) != 0});
        }
        std::vector<DeviceMetrics> devices;
        for (devices_.bind(host_id); devices_.step();) {
            DeviceMetrics& device = devices.emplace_back();
            device.device = devices_.text(0);
            device.component = devices_.text(1);
            device.simulated = devices_.integer(2) != 0;
        }
        for (metrics_.bind(host_id); metrics_.step();) {
            auto& of_region = host.regions.at(static_cast<std::size_t>(metrics_.integer(0))).devices;
            of_region.reserve(devices.size());
            fill(of_region.emplace_back(devices.at(static_cast<std::size_t>(metrics_.integer(1)))));
        }
        return host;
    }

    RegionRecord region(const std::string& run, const std::string& host) {
        RegionRecord region;
        region.run = run;
        region.host = host;
        region.name = regions_.text(0);
        region.index = regions_.integer(1);
        region.start_ns = regions_.integer(2);
        region.end_ns = regions_.integer(3);
        region.ranks = regions_.integer(4);
        region.open = regions_.integer(5) != 0;
        region.samples = regions_.optional_real(6);
        region.updates = regions_.optional_real(7);
        region.tokens = regions_.optional_real(8);
        region.loss = regions_.optional_real(9);
        region.quality_name = regions_.text(10);
        region.quality = regions_.optional_real(11);
        region.quality_direction = regions_.text(12);
        region.source = regions_.text(13);
        return region;
    }

    void fill(DeviceMetrics& m) {
        int column = 1;
        m.energy_method = metrics_.text(++column);
        for (auto* value :
             {&m.energy_j, &m.energy_bound_j, &m.energy_counter_j, &m.energy_integrated_j,
              &m.energy_protocol_j, &m.mean_power_w, &m.max_power_w, &m.gpu_memory_util_pct,
              &m.gpu_memory_max_pct, &m.gpu_memory_busy_pct, &m.gpu_busy_pct, &m.sm_util_pct, &m.sm_clock_mhz,
              &m.temperature_c, &m.power_limit_w, &m.throttled_pct, &m.cpu_busy_pct, &m.process_cpu_s}) {
            *value = metrics_.optional_real(++column);
        }
        m.covered_s = metrics_.real(++column);
        m.samples = metrics_.integer(++column);
        if (const auto p5_w = metrics_.optional_real(++column)) {
            m.profile = ProfileMetrics{.p5_w = *p5_w,
                                       .median_w = metrics_.real(column + 1),
                                       .p95_w = metrics_.real(column + 2),
                                       .sd_w = metrics_.real(column + 3),
                                       .fluctuation_hz = metrics_.real(column + 4),
                                       .at_limit_pct = metrics_.optional_real(column + 5),
                                       .idle_pct = metrics_.optional_real(column + 6)};
        }
        m.mean_power_1hz_w = metrics_.optional_real(column + 7);
    }

    Statement runs_, expected_, hosts_, devices_, warnings_, attributions_, regions_, metrics_;
};

}  // namespace

void for_each_run(const Database& database, const std::function<void(RunRecord&&)>& take, Share share) {
    Loader loader(database, "", share);
    for (RunRecord run; loader.next(run); run = RunRecord()) {
        take(std::move(run));
    }
}

std::vector<RunRecord> load_runs(const Database& database) {
    std::vector<RunRecord> runs;
    for_each_run(database, [&](RunRecord&& run) { runs.push_back(std::move(run)); });
    return runs;
}

RunRecord load_run(const Database& database, const std::string& run) {
    RunRecord record;
    Loader(database, run).next(record);
    return record;
}

std::string find_run(const Database& database, const std::string& text) {
    std::vector<std::string> matches;
    Statement runs = database.prepare("SELECT run FROM runs ORDER BY run");
    while (runs.step()) {
        if (runs.text(0) == text) {
            return text;
        }
        if (runs.text(0).starts_with(text)) {
            matches.emplace_back(runs.text(0));
        }
    }
    if (matches.empty()) {
        throw bad_input("there is no run '{}' here: joulemark show DIR lists the runs", text);
    }
    if (matches.size() > 1) {
        throw bad_input("'{}' can be any of {} runs, {} and {} among them: write more of the name", text,
                        matches.size(), matches[0], matches[1]);
    }
    return matches.front();
}

std::vector<Series> load_series(const Database& database, const std::string& run, const std::string& metric) {
    Statement series = database.prepare(
        "SELECT series_id, host, device, metric FROM runs JOIN hosts USING (run_id) JOIN series USING "
        "(host_id) "
        "WHERE run = ?1 AND (?2 = '' OR metric = ?2) ORDER BY host, series_id");
    Statement bins = database.prepare(
        "SELECT time_ns, minimum, mean, maximum FROM series_bins WHERE series_id = ? ORDER BY time_ns");
    std::vector<Series> all;
    for (series.bind(run, metric); series.step();) {
        Series& one = all.emplace_back();
        one.run = run;
        one.host = series.text(1);
        one.device = series.text(2);
        one.metric = series.text(3);
        for (bins.bind(series.integer(0)); bins.step();) {
            one.time_ns.push_back(bins.integer(0));
            one.minimum.push_back(bins.real(1));
            one.mean.push_back(bins.real(2));
            one.maximum.push_back(bins.real(3));
        }
    }
    return all;
}

}  // namespace joulemark::store
