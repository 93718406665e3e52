// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace joulemark::store {

/// A value that is not there, where a series or a table has a place for it.
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Something a reader of the results has to know: a stable code and one sentence.
struct Warning {
    std::string code;  ///< "damaged_lines", "stuck_sensor", "told_by_meter" ...
    std::string text;
};

/// The shape of a device's power over one window. It describes; it proves no efficiency.
struct ProfileMetrics {
    double p5_w = 0, median_w = 0, p95_w = 0;      ///< of the time
    double sd_w = 0;                               ///< amplitude of the fluctuation, time-weighted
    double fluctuation_hz = 0;                     ///< rises through the running mean, per second
    std::optional<double> at_limit_pct, idle_pct;  ///< shares of the time; absent without limit, utilisation
};

/// One device over one window (a region, or a whole run). Absent means not measured.
struct DeviceMetrics {
    std::string device;     ///< "gpu0", "cpu0", "dram0", "node"
    std::string component;  ///< "gpu", "cpu", "dram", "node"

    std::optional<double> energy_counter_j;     ///< difference of the unwrapped counter over the window
    std::optional<double> energy_integrated_j;  ///< trapezoid of the sampled power
    std::optional<double> energy_protocol_j;    ///< wall seconds x plain mean of the power samples
    std::optional<double> energy_j;             ///< best estimate: counter first, integral second
    std::string energy_method;                  ///< counter | integrated | attributed | estimated | imported
    std::optional<double> energy_bound_j;  ///< largest plausible error of energy_j from resolution and gaps
                                           ///< (a gap's energy is not in energy_j: it is bounded here)

    std::optional<double> mean_power_w;  ///< time-weighted; of attributed energy over the duration
    std::optional<double> max_power_w;
    std::optional<double> gpu_memory_util_pct;  ///< memory used / capacity, time-weighted
    std::optional<double> gpu_memory_max_pct;
    std::optional<double> gpu_memory_busy_pct, gpu_busy_pct, sm_util_pct;
    std::optional<double> sm_clock_mhz, temperature_c, power_limit_w;
    std::optional<double>
        throttled_pct;  ///< share of the window in which the driver throttled for power or heat
    std::optional<double> cpu_busy_pct;
    std::optional<double> process_cpu_s;  ///< CPU time of the metered processes

    double covered_s = 0;  ///< seconds of the window inside the sampled, gap-free part of the power series
                           ///< (of the counter's, then of any series, where the device has no power)
    std::int64_t samples = 0;  ///< of that series
    bool simulated = false;
    std::optional<ProfileMetrics> profile;  ///< of windows long enough for one
    /// The mean power that one sample a second would have shown.
    std::optional<double> mean_power_1hz_w;
};

/// Repeats of a short region, pooled: how their energy follows from the counter of one device.
struct Attribution {
    std::string device, name;
    std::int64_t regions = 0;
    double mean_duration_s = 0, mean_energy_j = 0, mean_bound_j = 0;
    std::optional<double> idle_power_w;             ///< outside all regions
    double refresh_s = 0, lag_s = 0, window_s = 0;  ///< of the sensor
    bool calibrated = false;                        ///< lag and window were known, else fitted
};

/// One region of one host; ranks of the host added up. `joulemark.command` is the whole command.
struct RegionRecord {
    std::string run, host, name;
    std::int64_t index = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    std::int64_t ranks = 0;
    bool open = false;  ///< the run was cut before its end edge; end_ns is the last sample
    std::optional<double> samples, updates, tokens, loss;
    std::string quality_name, quality_direction;
    std::optional<double> quality;
    std::string source;  ///< socket | mllog | regex | meter | imported
    std::vector<DeviceMetrics> devices;

    double duration_s() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};

/// What one host delivered. `run_json` and `end_json` are the files as docs/schema.md describes them.
struct HostRecord {
    std::string host;
    nlohmann::json run_json;
    std::optional<nlohmann::json> end_json = {};  ///< absent: the host was cut
    std::vector<RegionRecord> regions = {};       ///< by start
    std::vector<Attribution> attributions = {};
    std::vector<Warning> warnings = {};  ///< of the meter (both files) and of reading the folder
};

/// One run over all its hosts.
struct RunRecord {
    std::string run;
    std::string status;  ///< "ok" | "failed" (exit status) | "cut" (a host has no end.json) | "incomplete" (a
                         ///< host is missing)
    nlohmann::json factors = nlohmann::json::object();  ///< of run.json, completed by `config` messages
    nlohmann::json config = nlohmann::json::object();   ///< all `config` messages, later ones win
    std::vector<std::string> expected_hosts;
    std::vector<HostRecord> hosts;
};

/// A downsampled series of one metric of one device: minimum, plain mean and maximum per bin. A NaN bin
/// stands where the samples have a gap.
struct Series {
    std::string run, host, device, metric;
    std::vector<std::int64_t> time_ns;           ///< start of the bin
    std::vector<double> minimum, mean, maximum;  ///< NaN: no sample in the bin
};

}  // namespace joulemark::store
