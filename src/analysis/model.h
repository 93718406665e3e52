// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "stats/law.h"
#include "stats/optimum.h"
#include "stats/summary.h"
#include "store/summary.h"

/// What `joulemark analyze` finds. Absent is std::nullopt, never 0; the reason stands in a warning or in the
/// provenance. Units are in the names.
namespace joulemark::analysis {

using store::Value;

struct Warning {
    std::string code;  ///< stable, for scripts: "preliminary", "coverage", ...
    std::string text;  ///< what it is, where, and what to do about it
};

struct Quality {
    std::string name, direction;  ///< direction: "lower" or "higher" is better
    double value = 0;
};

/// How much of a window the samples of the least covered device of a component cover.
struct Coverage {
    std::string run, host, component, device;
    double covered_pct = 0;
};

/// One region on one host, its devices added up.
struct RegionMetrics {
    std::string host, name;
    std::int64_t index = 0, start_ns = 0, end_ns = 0;
    bool open = false, simulated = false;
    Value samples, updates, tokens, loss;
    Value energy_counter_j, energy_integrated_j, energy_j, energy_bound_j;
    Value mean_power_w, gpu_memory_util_pct, gpu_busy_pct, sm_util_pct;
    std::optional<store::MeanProfile> profile;
    std::string
        method;  ///< of energy_j: "counter", "integrated", "counter + estimated", ...; "" without energy
};

/// Repeats of a short region on one device, pooled; docs/methods.md, "Energy of short regions".
struct AttributedKind {
    std::string host, device, name;
    std::int64_t regions = 0;
    double mean_duration_s = 0, mean_energy_j = 0, mean_bound_j = 0;
    Value idle_power_w;
    double refresh_s = 0, lag_s = 0, window_s = 0;
    bool calibrated = false;
};

/// A device that tells energy, for as long as the command ran.
struct MeteredDevice {
    std::string name;          ///< "gpu0"
    std::size_t identity = 0;  ///< a hash of the machine's boot and the device's UUID, or its name where it has none
    std::int64_t start_ns = 0, end_ns = 0;  ///< on the machine's clock
};

/// What surrounds a run and is never subtracted from it.
struct Baseline {
    Value idle_before_w, idle_after_w;  ///< all GPUs together, over joulemark.idle_before and idle_after
    Value temperature_change_k;         ///< over the timed epochs, of the GPU that changed most
    std::optional<bool> steady;         ///< it changed by steady_within_k at most; absent: fewer than three epochs
};
inline constexpr double steady_within_k = 3;

/// One run over all its hosts; science.md, "Metrics". All energies without "epoch" are of the command's
/// window, which gpu_hours counts too.
struct RunMetrics : store::RunTotals {
    std::string run, study;
    std::string status;                    ///< "ok", "failed", "cut", "incomplete"; "copy" of another run
    std::optional<std::int64_t> position;  ///< in the order of the study
    nlohmann::json factors = nlohmann::json::object();
    std::vector<std::string> hosts, missing_hosts;
    bool simulated = false, estimated = false;
    bool global_batch_stated = false;  ///< the study varies the global batch, local batches follow

    Value energy_counter_j, energy_integrated_j, energy_protocol_j;
    Value co2e_g, cost;  ///< only when asked for (analysis/footprint.h)
    Value gpu_memory_util_pct, gpu_memory_busy_pct, gpu_busy_pct, sm_util_pct, throttled_pct, sm_clock_mhz;
    std::map<std::string, double> energy_by_component_j, energy_by_node_j;
    std::optional<std::int64_t> start_realtime_ns;  ///< wall clock at which the command began
    double gpu_count = 0;                           ///< metered
    Value host_memory_gb;                           ///< of all hosts; absent when one did not tell
    Value max_gpu_power_w;                          ///< of any GPU: tells whether a cap was ever reached
    std::optional<store::MeanProfile> profile;      ///< of the command
    /// What one sample a second would have made of the mean power, relative to the samples there are.
    Value decimated_1hz_pct;
    std::optional<Quality> quality;
    std::string train_seed;                  ///< "" when the program did not tell it
    std::vector<std::string> components;     ///< that energy_j adds up
    std::size_t mean_of = 1;                 ///< repeats, where an imported row is their mean
    std::map<std::string, double> sd_given;  ///< of one repeat, by metric, where the row tells it

    nlohmann::json provenance = nlohmann::json::object();
    std::vector<Coverage> coverage;
    std::vector<RegionMetrics> regions;
    std::vector<AttributedKind> attributed;
    std::vector<MeteredDevice> metered;  ///< of real devices
    Baseline baseline;
    std::vector<Warning> warnings;  ///< about this run

    std::vector<std::string> origins;  ///< what identifies the recording of each host (analysis/copies.h)
    bool original = true;              ///< its folder has the name that it was recorded under

    bool usable() const { return status == "ok"; }
};

/// Every number of a run that is printed and summarised over repeats: a new one is a row of this table.
struct MetricField {
    std::string_view name;
    Value RunMetrics::*value;
    bool of_energy = false;
};
std::span<const MetricField> metric_fields();
/// The field of that name; precondition: it is in the table.
const MetricField& metric_field(std::string_view name);

/// The repeats of one configuration: usable runs with equal factors.
struct Configuration {
    nlohmann::json factors = nlohmann::json::object();
    std::vector<const RunMetrics*> runs;
    std::map<std::string, stats::Summary, std::less<>>
        metrics;  ///< by MetricField::name; absent: not measured

    /// Runs, or what the only row of a table is the mean of.
    std::size_t repeats() const { return runs.size() == 1 ? runs.front()->mean_of : runs.size(); }
    bool preliminary() const { return repeats() == 1; }
    bool simulated() const { return std::ranges::any_of(runs, &RunMetrics::simulated); }
    Value number(std::string_view factor) const;  ///< a numeric factor
    Value mean(std::string_view metric) const;
    /// The runs' values of a metric; without those whose energy is uncertain, where it is one of energy.
    std::vector<double> values(std::string_view metric) const;
};

/// A fitted form for one response over one factor, or why there is none (form empty).
struct Law {
    std::string response, factor;
    std::string scaling;  ///< over gpus: "strong" (global batch fixed), "weak" (local batch fixed), "" else
    nlohmann::json group = nlohmann::json::object();  ///< the factors that stay constant
    std::optional<stats::LawFit> fit;
    std::size_t n_levels = 0, n_runs = 0;
    bool selected = false;
    std::string reason;  ///< why selected, or why there is no law
    bool simulated = false;
};

/// Speed-up against the smallest configuration of a series over gpus.
struct ScalingTable {
    std::string scaling;
    nlohmann::json group = nlohmann::json::object();
    double baseline_gpus = 0;
    struct Row {
        double gpus = 0;
        double epoch_time_s = 0, speed_up = 0, efficiency = 0;
        Value epoch_energy_j, energy_ratio;
        bool preliminary = false;
    };
    std::vector<Row> rows;
    bool simulated = false;
};

/// Total energy over GPU hours, or over samples of the data set: ordinary least squares with intercept on
/// configurations, and the same weighted for relative errors beside it.
struct EnergyLine {
    nlohmann::json group = nlohmann::json::object();
    bool pooled = false;
    stats::Estimate slope;      ///< kWh per GPU hour, or Wh per sample
    stats::Estimate intercept;  ///< kWh
    double r2 = 0;
    std::optional<stats::Estimate> weighted_slope;
    std::size_t n = 0, n_runs = 0;
    bool simulated = false;
};

/// A linear model on configurations: what each term adds with the others held fixed.
struct Regression {
    struct Term {
        std::string name;
        stats::Estimate estimate;
        Value vif;  ///< variance inflation; none for the intercept
    };
    struct Refusal {
        std::vector<std::string> terms;
        std::string reason;
    };
    std::string response;
    nlohmann::json group = nlohmann::json::object();
    std::vector<Term> terms;
    std::vector<Refusal> refused;  ///< terms that the data cannot tell apart, and why
    std::vector<std::string> notes;
    double r2 = 0;
    std::size_t n = 0;  ///< configurations
    bool simulated = false;
};

/// What an unmeasured part could change.
struct Sensitivity {
    std::string component;
    double low = 0, high = 0;
    std::string unit, source;
    stats::Interval energy_band_j;  ///< of all usable runs that lack the part, with it
    struct Conclusion {
        std::string text;
        bool survives = false;
    };
    std::vector<Conclusion> conclusions;
};

/// Wall power per host over that of the measured components, and what it says of runs without a wall meter.
struct WallCalibration {
    std::string hardware;
    std::vector<std::string> components;
    stats::Estimate base_w, factor;  ///< wall = base_w + factor x components
    double r2 = 0;
    std::size_t n = 0;  ///< runs with both
    struct Run {
        std::string run;
        stats::Estimate wall_energy_j;  ///< estimated, with its prediction interval
    };
    std::vector<Run> estimates;
    bool simulated = false;
};

/// The level of least energy per epoch over a cap or a clock.
struct LeastEnergy {
    std::string factor;
    nlohmann::json group = nlohmann::json::object();
    double measured_at = 0;                 ///< the level whose measured mean is least
    stats::Summary measured;                ///< the energy per epoch there
    std::optional<stats::Optimum> optimum;  ///< of the fitted laws; none where they miss what was measured
    std::string reason;                     ///< why there is none
    double departure = 0;                   ///< the largest, of the laws' product from a measured mean; relative
    std::size_t n_levels = 0;
    bool simulated = false;
};

/// The most frugal configuration of a workload against its fastest.
struct TradeOff {
    nlohmann::json group = nlohmann::json::object();
    nlohmann::json fastest, frugal;            ///< their factors
    stats::Estimate time_ratio, energy_ratio;  ///< frugal over fastest; no interval from single runs
    bool simulated = false;

    /// Whether its energy is less by more than repeats scatter.
    bool significant() const { return energy_ratio.ci95 && energy_ratio.ci95->high < 1; }
};

/// Quality over the global batch.
struct BatchKnee {
    nlohmann::json group = nlohmann::json::object();
    std::string quality, direction;
    struct Level {
        double batch = 0;
        stats::Summary quality;
    };
    std::vector<Level> levels;
    Value knee, beyond;  ///< the last batch before quality is significantly worse, and the first after
    std::string reason;
    bool simulated = false;
};

/// Two kinds of hardware on the same work, first over second.
struct HardwareComparison {
    std::string first, second, factor;
    nlohmann::json group = nlohmann::json::object();
    struct Row {
        double level = 0;
        stats::Estimate time_ratio, energy_ratio;
    };
    std::vector<Row> rows;
    struct Crossing {
        double from = 0, to = 0;   ///< the order of energies turns between these levels
        bool significant = false;  ///< on both sides
    };
    std::vector<Crossing> crossings;
    bool simulated = false;
};

/// A configuration beside a published number.
struct PublishedComparison {
    nlohmann::json factors = nlohmann::json::object();
    std::string metric;
    stats::Summary value;
    std::string source;
    stats::Interval published;
    std::string published_components, note;
    bool comparable = false;
    std::string reason;  ///< why it is not
};

struct Model {
    std::vector<RunMetrics> runs;
    std::vector<Configuration> configurations;
    std::vector<Law> laws;
    std::vector<ScalingTable> scaling;
    std::vector<EnergyLine> energy_per_gpu_hour, energy_per_sample;
    std::vector<Regression> regressions;
    std::vector<Sensitivity> sensitivity;
    std::vector<WallCalibration> wall_calibration;
    std::vector<LeastEnergy> least_energy;
    std::vector<TradeOff> trade_offs;
    std::vector<BatchKnee> batch_knees;
    std::vector<HardwareComparison> hardware;
    std::vector<PublishedComparison> published;
    std::vector<Warning> warnings;

    Model() = default;
    Model(Model&&) = default;  // configurations point into runs: moving keeps them valid, copying would not
    Model& operator=(Model&&) = default;
};

}  // namespace joulemark::analysis
