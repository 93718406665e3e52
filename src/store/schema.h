// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace joulemark::store {

/// PRAGMA user_version of the database. A database of another version is made again from the run files,
/// so there are no migrations: raise it with every change of schema_sql or of the meaning of a column.
inline constexpr int schema_version = 6;

/// Described in docs/schema.md. No STRICT tables: the SQLite of many clusters' Python cannot open them.
/// Keys start with the host, so that everything of one host is one range of the file.
inline const std::string schema_sql = R"sql(
CREATE TABLE runs (
    run_id INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    simulated INTEGER NOT NULL,
    expected_hosts INTEGER NOT NULL,
    received_hosts INTEGER NOT NULL,
    factors TEXT NOT NULL,
    config TEXT NOT NULL);

CREATE TABLE hosts (
    host_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    host TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    config TEXT NOT NULL,
    run_json TEXT NOT NULL,
    end_json TEXT,
    UNIQUE (run_id, host));

CREATE TABLE expected_hosts (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    host TEXT NOT NULL,
    PRIMARY KEY (run_id, host)) WITHOUT ROWID;

CREATE TABLE devices (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    device_number INTEGER NOT NULL,
    device TEXT NOT NULL,
    component TEXT NOT NULL,
    name TEXT,
    uuid TEXT,
    pci_bus_id TEXT,
    memory_bytes REAL,
    power_limit_w REAL,
    simulated INTEGER NOT NULL,
    PRIMARY KEY (host_id, device_number)) WITHOUT ROWID;

CREATE TABLE sources (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    source_number INTEGER NOT NULL,
    source TEXT NOT NULL,
    device TEXT NOT NULL,
    metrics TEXT NOT NULL,
    method TEXT,
    scope TEXT,
    origin TEXT,
    period_s REAL,
    native_period_s REAL,
    achieved_hz REAL,
    accuracy_pct REAL,
    accuracy_note TEXT,
    PRIMARY KEY (host_id, source_number)) WITHOUT ROWID;

CREATE TABLE unavailable (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    name TEXT,
    quantity TEXT,
    scope TEXT,
    reason TEXT,
    remedy TEXT);
CREATE INDEX unavailable_of_host ON unavailable (host_id);

CREATE TABLE warnings (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    code TEXT NOT NULL,
    text TEXT NOT NULL);
CREATE INDEX warnings_of_host ON warnings (host_id);

CREATE TABLE regions (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    region_number INTEGER NOT NULL,
    name TEXT NOT NULL,
    region_index INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    ranks INTEGER NOT NULL,
    open INTEGER NOT NULL,
    samples REAL,
    updates REAL,
    tokens REAL,
    loss REAL,
    quality_name TEXT,
    quality REAL,
    quality_direction TEXT,
    source TEXT,
    PRIMARY KEY (host_id, region_number)) WITHOUT ROWID;

CREATE TABLE region_devices (
    host_id INTEGER NOT NULL,
    region_number INTEGER NOT NULL,
    device_number INTEGER NOT NULL,
    energy_method TEXT,
    energy_j REAL,
    energy_bound_j REAL,
    energy_counter_j REAL,
    energy_integrated_j REAL,
    energy_protocol_j REAL,
    mean_power_w REAL,
    max_power_w REAL,
    gpu_memory_util_pct REAL,
    gpu_memory_max_pct REAL,
    gpu_memory_busy_pct REAL,
    gpu_busy_pct REAL,
    sm_util_pct REAL,
    sm_clock_mhz REAL,
    temperature_c REAL,
    power_limit_w REAL,
    throttled_pct REAL,
    cpu_busy_pct REAL,
    process_cpu_s REAL,
    covered_s REAL NOT NULL,
    samples INTEGER NOT NULL,
    power_p5_w REAL,
    power_median_w REAL,
    power_p95_w REAL,
    power_sd_w REAL,
    power_fluctuation_hz REAL,
    power_at_limit_pct REAL,
    idle_pct REAL,
    mean_power_1hz_w REAL,
    PRIMARY KEY (host_id, region_number, device_number),
    FOREIGN KEY (host_id, region_number) REFERENCES regions ON DELETE CASCADE) WITHOUT ROWID;

CREATE TABLE attributions (
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    device TEXT NOT NULL,
    name TEXT NOT NULL,
    regions INTEGER NOT NULL,
    mean_duration_s REAL NOT NULL,
    mean_energy_j REAL NOT NULL,
    mean_bound_j REAL NOT NULL,
    idle_power_w REAL,
    refresh_s REAL NOT NULL,
    lag_s REAL NOT NULL,
    window_s REAL NOT NULL,
    calibrated INTEGER NOT NULL);
CREATE INDEX attributions_of_host ON attributions (host_id);

CREATE TABLE series (
    series_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
    device TEXT NOT NULL,
    metric TEXT NOT NULL,
    UNIQUE (host_id, device, metric));

CREATE TABLE series_bins (
    series_id INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    time_ns INTEGER NOT NULL,
    minimum REAL,
    mean REAL,
    maximum REAL,
    PRIMARY KEY (series_id, time_ns)) WITHOUT ROWID;

CREATE VIEW region_metrics AS
    SELECT run, host, regions.name AS region, region_index, start_ns, end_ns,
           (end_ns - start_ns) / 1e9 AS duration_s, regions.samples AS processed_samples, device, component,
           devices.simulated, region_devices.*
    FROM runs JOIN hosts USING (run_id) JOIN regions USING (host_id)
    JOIN region_devices USING (host_id, region_number) JOIN devices USING (host_id, device_number);

CREATE VIEW series_points AS
    SELECT run, host, device, metric, time_ns, minimum, mean, maximum
    FROM runs JOIN hosts USING (run_id) JOIN series USING (host_id) JOIN series_bins USING (series_id);

CREATE VIEW missing_hosts AS
    SELECT run, host FROM expected_hosts JOIN runs USING (run_id)
    WHERE NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.run_id = expected_hosts.run_id
                                             AND hosts.host = expected_hosts.host);
)sql";

}  // namespace joulemark::store
