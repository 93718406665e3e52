// SPDX-License-Identifier: Apache-2.0
#include "store/host_writer.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace joulemark::store {
namespace {

using nlohmann::json;

/// The parts of a program's `config` message that say which configuration it ran: they complete the factors.
/// Others, such as a seed, must not tell repeats of one configuration apart.
constexpr std::array factor_keys{"workload",     "gpus",        "gpus_per_node", "local_batch",
                                 "global_batch", "power_cap_w", "sm_clock_mhz",  "dataset_samples",
                                 "precision",    "warmup_epochs"};

const json* find_by(const json& rows, const char* key, const std::string& value) {
    const auto found =
        std::ranges::find_if(rows, [&](const json& row) { return json_text(row, key) == value; });
    return found == rows.end() ? nullptr : &*found;
}

/// Absent as NULL, not as an empty text.
std::optional<std::string> text_of(const json& object, const char* key) {
    std::string text = json_text(object, key);
    return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::optional<std::string> non_empty(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

bool failed(const json& end_json) {
    return json_number(end_json, "exit_status").value_or(1) != 0 ||
           json_number(end_json, "signal").value_or(0) != 0 || !json_text(end_json, "signal").empty() ||
           !json_array(end_json, "failed_ranks").empty();
}

}  // namespace

HostWriter::HostWriter(Database& database)
    : database_(database),
      insert_region_(database.prepare("INSERT INTO regions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")),
      insert_region_device_(
          database.prepare("INSERT INTO region_devices VALUES "
                           "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")),
      insert_series_(database.prepare("INSERT INTO series (host_id, device, metric) VALUES (?,?,?)")),
      insert_bin_(database.prepare("INSERT OR REPLACE INTO series_bins VALUES (?,?,?,?,?)")) {}

std::int64_t HostWriter::run_id(const std::string& run) {
    database_
        .prepare(
            "INSERT OR IGNORE INTO runs (run, status, simulated, expected_hosts, received_hosts, factors, "
            "config) "
            "VALUES (?, 'incomplete', 0, 0, 0, '{}', '{}')")
        .run(run);
    Statement find = database_.prepare("SELECT run_id FROM runs WHERE run = ?");
    find.bind(run).step();
    return find.integer(0);
}

void HostWriter::remove(const std::string& run, const std::string& host) {
    database_.prepare("DELETE FROM hosts WHERE host = ? AND run_id = (SELECT run_id FROM runs WHERE run = ?)")
        .run(host, run);
}

std::string HostWriter::fingerprint(const std::string& run, const std::string& host) {
    Statement find = database_.prepare(
        "SELECT fingerprint FROM hosts JOIN runs USING (run_id) WHERE run = ? AND host = ?");
    return find.bind(run, host).step() ? std::string(find.text(0)) : std::string();
}

void HostWriter::write(const std::string& run, const HostDigest& digest, const std::string& fingerprint) {
    const HostRecord& record = digest.record;
    remove(run, record.host);
    const std::optional<std::string> end_json =
        record.end_json ? std::optional(record.end_json->dump()) : std::nullopt;
    database_
        .prepare(
            "INSERT INTO hosts (run_id, host, fingerprint, config, run_json, end_json) VALUES (?,?,?,?,?,?)")
        .run(run_id(run), record.host, fingerprint, digest.config.dump(), record.run_json.dump(), end_json);
    const std::int64_t host_id = database_.last_row();
    write_identity(host_id, digest);
    write_regions(host_id, record);
    write_series(host_id, digest);
}

void HostWriter::write_identity(std::int64_t host_id, const HostDigest& digest) {
    const HostRecord& record = digest.record;
    const json& listed = json_array(record.run_json, "devices");
    static const json unlisted = json::object();
    Statement insert_device = database_.prepare("INSERT INTO devices VALUES (?,?,?,?,?,?,?,?,?,?)");
    for (std::size_t number = 0; number < record.regions.front().devices.size(); ++number) {
        const DeviceMetrics& device = record.regions.front().devices[number];
        const json* found = find_by(listed, "device", device.device);
        const json& facts = found != nullptr ? *found : unlisted;
        insert_device.run(host_id, number, device.device, device.component, text_of(facts, "name"),
                          text_of(facts, "uuid"), text_of(facts, "pci_bus_id"),
                          json_number(facts, "memory_bytes"), json_number(facts, "power_limit_w"),
                          device.simulated);
    }

    Statement insert_source = database_.prepare("INSERT INTO sources VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
    std::size_t number = 0;
    for (const json& source : json_array(record.run_json, "sources")) {
        const std::string name = json_text(source, "source");
        insert_source.run(host_id, number++, name, json_text(source, "device"),
                          json_array(source, "metrics").dump(), text_of(source, "method"),
                          text_of(source, "scope"), text_of(source, "origin"),
                          json_number(source, "period_s"), json_number(source, "native_period_s"),
                          record.end_json ? achieved_hz(*record.end_json, source) : std::nullopt,
                          json_number(source, "accuracy_pct"), text_of(source, "accuracy_note"));
    }
    Statement insert_unavailable = database_.prepare("INSERT INTO unavailable VALUES (?,?,?,?,?,?)");
    for (const json& missing : json_array(record.run_json, "unavailable")) {
        insert_unavailable.run(host_id, text_of(missing, "name"), text_of(missing, "quantity"),
                               text_of(missing, "scope"), text_of(missing, "reason"),
                               text_of(missing, "remedy"));
    }
    Statement insert_attribution =
        database_.prepare("INSERT INTO attributions VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
    for (const Attribution& a : record.attributions) {
        insert_attribution.run(host_id, a.device, a.name, a.regions, a.mean_duration_s, a.mean_energy_j,
                               a.mean_bound_j, a.idle_power_w, a.refresh_s, a.lag_s, a.window_s,
                               a.calibrated);
    }
    Statement insert_warning = database_.prepare("INSERT INTO warnings VALUES (?,?,?)");
    for (const Warning& warning : record.warnings) {
        insert_warning.run(host_id, warning.code, warning.text);
    }
}

void HostWriter::write_regions(std::int64_t host_id, const HostRecord& record) {
    for (std::size_t number = 0; number < record.regions.size(); ++number) {
        const RegionRecord& region = record.regions[number];
        insert_region_.run(host_id, number, region.name, region.index, region.start_ns, region.end_ns,
                           region.ranks, region.open, region.samples, region.updates, region.tokens,
                           region.loss, non_empty(region.quality_name), region.quality,
                           non_empty(region.quality_direction), non_empty(region.source));
        for (std::size_t device = 0; device < region.devices.size(); ++device) {
            const DeviceMetrics& m = region.devices[device];
            const auto shape = [&](auto member) {
                return m.profile ? std::optional<double>((*m.profile).*member) : std::nullopt;
            };
            insert_region_device_.run(
                host_id, number, device, non_empty(m.energy_method), m.energy_j, m.energy_bound_j,
                m.energy_counter_j, m.energy_integrated_j, m.energy_protocol_j, m.mean_power_w, m.max_power_w,
                m.gpu_memory_util_pct, m.gpu_memory_max_pct, m.gpu_memory_busy_pct, m.gpu_busy_pct,
                m.sm_util_pct, m.sm_clock_mhz, m.temperature_c, m.power_limit_w, m.throttled_pct,
                m.cpu_busy_pct, m.process_cpu_s, m.covered_s, m.samples, shape(&ProfileMetrics::p5_w),
                shape(&ProfileMetrics::median_w), shape(&ProfileMetrics::p95_w), shape(&ProfileMetrics::sd_w),
                shape(&ProfileMetrics::fluctuation_hz), m.profile ? m.profile->at_limit_pct : std::nullopt,
                m.profile ? m.profile->idle_pct : std::nullopt, m.mean_power_1hz_w);
        }
    }
}

void HostWriter::write_series(std::int64_t host_id, const HostDigest& digest) {
    for (const Series& series : digest.series) {
        insert_series_.run(host_id, series.device, series.metric);
        const std::int64_t series_id = database_.last_row();
        for (std::size_t bin = 0; bin < series.time_ns.size(); ++bin) {
            insert_bin_.run(series_id, series.time_ns[bin], series.minimum[bin], series.mean[bin],
                            series.maximum[bin]);
        }
    }
}

void HostWriter::refresh_run(const std::string& run) {
    const std::int64_t id = run_id(run);
    std::set<std::string> expected, received;
    json factors = json::object(), config = json::object();
    bool cut = false, any_failed = false, unidentified = false;
    Statement hosts = database_.prepare(
        "SELECT host, config, run_json, end_json FROM hosts WHERE run_id = ? ORDER BY host");
    for (hosts.bind(id); hosts.step();) {
        received.emplace(hosts.text(0));
        config.update(hosts.json(1));
        const json run_json = hosts.json(2);
        for (const json& host : json_array(run_json, "expected_hosts")) {
            if (host.is_string()) {
                expected.insert(host.get<std::string>());
            }
        }
        if (const auto own = run_json.find("factors"); own != run_json.end() && own->is_object()) {
            factors.insert(own->begin(), own->end());  // the first host's value stays
        }
        unidentified = unidentified || json_text(run_json, "run").empty();
        cut = cut || hosts.is_null(3);
        any_failed = any_failed || (!hosts.is_null(3) && failed(hosts.json(3)));
    }
    if (received.empty()) {
        database_.prepare("DELETE FROM runs WHERE run_id = ?").run(id);
        return;
    }
    for (const char* key : factor_keys) {
        if (const auto told = config.find(key); told != config.end() && !factors.contains(key)) {
            factors[key] = *told;
        }
    }
    expected.insert(received.begin(), received.end());
    database_.prepare("DELETE FROM expected_hosts WHERE run_id = ?").run(id);
    Statement insert_expected = database_.prepare("INSERT INTO expected_hosts VALUES (?,?)");
    for (const std::string& host : expected) {
        insert_expected.run(id, host);
    }
    // Without run.json nobody knows what was metered, on which hosts, or whether it was simulated.
    const char* status = expected.size() > received.size() || unidentified ? "incomplete"
                         : cut                                             ? "cut"
                         : any_failed                                      ? "failed"
                                                                           : "ok";
    Statement update = database_.prepare(
        "UPDATE runs SET status = ?2, expected_hosts = ?3, received_hosts = ?4, factors = ?5, config = ?6, "
        "simulated = "
        "EXISTS (SELECT 1 FROM devices JOIN hosts USING (host_id) WHERE run_id = ?1 AND simulated) WHERE "
        "run_id = ?1");
    update.run(id, status, expected.size(), received.size(), factors.dump(), config.dump());
}

}  // namespace joulemark::store
