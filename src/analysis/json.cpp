// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "analysis/analyze.h"
#include "analysis/energy.h"
#include "stats/diagnostics.h"

namespace joulemark::analysis {
namespace {

using nlohmann::json;

/// JSON knows no infinity; an open end of an interval is null.
json finite(double value) {
    return std::isfinite(value) ? json(value) : json(nullptr);
}

json maybe(const Value& value) {
    return value ? finite(*value) : json(nullptr);
}

json interval(const std::optional<stats::Interval>& ci) {
    return ci ? json{finite(ci->low), finite(ci->high)} : json(nullptr);
}

json estimate(const stats::Estimate& value) {
    return {{"value", finite(value.value)}, {"ci95", interval(value.ci95)}};
}

json warnings_json(const std::vector<Warning>& warnings) {
    json list = json::array();
    for (const Warning& warning : warnings) {
        list.push_back({{"code", warning.code}, {"text", warning.text}});
    }
    return list;
}

json profile_json(const std::optional<store::MeanProfile>& profile) {
    if (!profile) {
        return nullptr;
    }
    return {{"p5_w", finite(profile->p5_w)},
            {"median_w", finite(profile->median_w)},
            {"p95_w", finite(profile->p95_w)},
            {"sd_w", finite(profile->sd_w)},
            {"fluctuation_hz", finite(profile->fluctuation_hz)},
            {"at_limit_pct", maybe(profile->at_limit_pct)},
            {"idle_pct", maybe(profile->idle_pct)},
            {"gpus", profile->gpus}};
}

json run_json(const RunMetrics& run) {
    json entry{{"run", run.run},
               {"status", run.status},
               {"factors", run.factors},
               {"hosts", run.hosts},
               {"missing_hosts", run.missing_hosts},
               {"energy_by_component_j", run.energy_by_component_j},
               {"energy_by_node_j", run.energy_by_node_j},
               {"epochs", run.epochs},
               {"simulated", run.simulated},
               {"estimated", run.estimated},
               {"provenance", run.provenance},
               {"warnings", warnings_json(run.warnings)}};
    for (const MetricField& field : metric_fields()) {
        entry[std::string(field.name)] = maybe(run.*field.value);
    }
    const Baseline& baseline = run.baseline;
    entry["idle_power_w"] = {{"before", maybe(baseline.idle_before_w)},
                             {"after", maybe(baseline.idle_after_w)}};
    entry["thermal"] = {{"change_k", maybe(baseline.temperature_change_k)},
                        {"steady", baseline.steady ? json(*baseline.steady) : json(nullptr)}};
    entry["power_profile"] = profile_json(run.profile);
    entry["decimated_1hz_pct"] = maybe(run.decimated_1hz_pct);
    entry["quality"] = run.quality ? json{{"name", run.quality->name},
                                          {"value", finite(run.quality->value)},
                                          {"direction", run.quality->direction}}
                                   : json(nullptr);
    return entry;
}

json summary_json(const stats::Summary& summary) {
    return {{"mean", finite(summary.mean)},
            {"sd", maybe(summary.sd)},
            {"ci95", interval(summary.ci95)},
            {"n", summary.n}};
}

json configuration_json(const Configuration& configuration) {
    json names = json::array();
    for (const RunMetrics* run : configuration.runs) {
        names.push_back(run->run);
    }
    json entry{{"factors", configuration.factors},
               {"n", configuration.repeats()},
               {"preliminary", configuration.preliminary()},
               {"simulated", configuration.simulated()},
               {"runs", names},
               // These keys stay, whatever was measured.
               {"epoch_time_s", nullptr},
               {"energy_j", nullptr},
               {"energy_per_gpu_hour_kwh", nullptr}};
    for (const auto& [name, summary] : configuration.metrics) {
        entry[name] = summary_json(summary);
    }
    return entry;
}

json wall_json(const WallCalibration& calibration) {
    json estimates = json::array();
    for (const auto& run : calibration.estimates) {
        estimates.push_back({{"run", run.run}, {"wall_energy_estimated_j", estimate(run.wall_energy_j)}});
    }
    return {{"hardware", calibration.hardware},
            {"components", calibration.components},
            {"base_w", estimate(calibration.base_w)},
            {"factor", estimate(calibration.factor)},
            {"r2", finite(calibration.r2)},
            {"n", calibration.n},
            {"estimates", estimates},
            {"simulated", calibration.simulated}};
}

json least_energy_json(const LeastEnergy& least) {
    json entry{{"factor", least.factor},
               {"group", least.group},
               {"measured", {{"level", least.measured_at}, {"epoch_energy_j", summary_json(least.measured)}}},
               {"value", nullptr},
               {"ci95", nullptr},
               {"epoch_energy_j", nullptr},
               {"interior", false},
               {"interior_share", nullptr},
               {"time_form", nullptr},
               {"power_form", nullptr},
               {"reason", least.reason},
               {"departure", finite(least.departure)},
               {"n_levels", least.n_levels},
               {"simulated", least.simulated}};
    if (const auto& optimum = least.optimum) {
        entry["value"] = finite(optimum->at);
        entry["ci95"] = interval(optimum->ci95);
        entry["epoch_energy_j"] = finite(optimum->value);
        entry["interior"] = optimum->interior;
        entry["interior_share"] = optimum->interior_share;
        entry["time_form"] = stats::info(optimum->first).id;
        entry["power_form"] = stats::info(optimum->second).id;
    }
    return entry;
}

json trade_off_json(const TradeOff& trade_off) {
    return {{"group", trade_off.group},
            {"fastest", {{"factors", trade_off.fastest}}},
            {"frugal", {{"factors", trade_off.frugal}}},
            {"time_ratio", estimate(trade_off.time_ratio)},
            {"energy_ratio", estimate(trade_off.energy_ratio)},
            {"significant", trade_off.significant()},
            {"simulated", trade_off.simulated}};
}

json knee_json(const BatchKnee& knee) {
    json levels = json::array();
    for (const auto& level : knee.levels) {
        levels.push_back({{"global_batch", level.batch}, {"quality", summary_json(level.quality)}});
    }
    return {{"group", knee.group},   {"quality", knee.quality},    {"direction", knee.direction},
            {"levels", levels},      {"knee", maybe(knee.knee)},   {"beyond", maybe(knee.beyond)},
            {"reason", knee.reason}, {"simulated", knee.simulated}};
}

json hardware_json(const HardwareComparison& comparison) {
    json rows = json::array();
    for (const auto& row : comparison.rows) {
        rows.push_back({{"level", row.level},
                        {"time_ratio", estimate(row.time_ratio)},
                        {"energy_ratio", estimate(row.energy_ratio)}});
    }
    json crossings = json::array();
    for (const auto& crossing : comparison.crossings) {
        crossings.push_back(
            {{"from", crossing.from}, {"to", crossing.to}, {"significant", crossing.significant}});
    }
    return {{"first", comparison.first},
            {"second", comparison.second},
            {"factor", comparison.factor},
            {"group", comparison.group},
            {"rows", rows},
            {"crossings", crossings},
            {"simulated", comparison.simulated}};
}

json published_json(const PublishedComparison& comparison) {
    return {{"factors", comparison.factors},
            {"metric", comparison.metric},
            {"value", summary_json(comparison.value)},
            {"source", comparison.source},
            {"published", interval(comparison.published)},
            {"components", comparison.published_components},
            {"note", comparison.note},
            {"comparable", comparison.comparable},
            {"reason", comparison.reason}};
}

json law_json(const Law& law) {
    json entry{{"response", law.response}, {"factor", law.factor},      {"scaling", law.scaling},
               {"group", law.group},       {"form", nullptr},           {"parameters", json::object()},
               {"n_levels", law.n_levels}, {"n_runs", law.n_runs},      {"r2", nullptr},
               {"aicc", nullptr},          {"loo_rmse", nullptr},       {"selected", law.selected},
               {"reason", law.reason},     {"simulated", law.simulated}};
    if (!law.fit) {
        return entry;
    }
    const stats::FormInfo& form = stats::info(law.fit->form);
    entry["form"] = form.id;
    entry["formula"] = form.formula;
    for (std::size_t i = 0; i < form.parameters.size(); ++i) {
        entry["parameters"][std::string(form.parameters[i])] = estimate(law.fit->parameters[i]);
    }
    entry["r2"] = finite(law.fit->r2);
    entry["aicc"] = maybe(law.fit->aicc);
    entry["loo_rmse"] = maybe(law.fit->loo_rmse);
    entry["predictions"] = json::array();
    for (Eigen::Index level = 0; level < law.fit->x.size(); ++level) {
        const double x = law.fit->x[level];
        const stats::Estimate mean = law.fit->mean_at(x);
        entry["predictions"].push_back({{"level", finite(x)},
                                        {"value", finite(mean.value)},
                                        {"ci95", interval(mean.ci95)},
                                        {"pi95", interval(law.fit->prediction_at(x))}});
    }
    const stats::LackOfFit& lack = law.fit->lack;
    entry["lack_of_fit"] = {{"repeats_p", maybe(lack.repeats_p)},
                            {"curvature_p", maybe(lack.curvature_p)},
                            {"departure", finite(lack.departure)},
                            {"at", finite(lack.at)},
                            {"significant", lack.significant()}};
    entry["diagnostics"] = {{"heteroscedasticity_p", maybe(stats::heteroscedasticity_p(*law.fit))},
                            {"influential_levels", stats::influential_levels(*law.fit)}};
    return entry;
}

json scaling_json(const ScalingTable& table) {
    json rows = json::array();
    for (const auto& row : table.rows) {
        rows.push_back({{"gpus", row.gpus},
                        {"epoch_time_s", row.epoch_time_s},
                        {"speed_up", row.speed_up},
                        {"efficiency", row.efficiency},
                        {"epoch_energy_j", maybe(row.epoch_energy_j)},
                        {"energy_ratio", maybe(row.energy_ratio)},
                        {"preliminary", row.preliminary}});
    }
    return {{"scaling", table.scaling},
            {"group", table.group},
            {"baseline", {{"gpus", table.baseline_gpus}}},
            {"rows", rows},
            {"simulated", table.simulated}};
}

json lines_json(const std::vector<EnergyLine>& lines, const char* slope_name) {
    json list = json::array();
    for (const EnergyLine& line : lines) {
        list.push_back({{"group", line.group},
                        {"pooled", line.pooled},
                        {slope_name, estimate(line.slope)},
                        {"intercept_kwh", finite(line.intercept.value)},
                        {"intercept_ci95", interval(line.intercept.ci95)},
                        {"weighted", line.weighted_slope ? estimate(*line.weighted_slope) : json(nullptr)},
                        {"r2", finite(line.r2)},
                        {"n", line.n},
                        {"n_runs", line.n_runs},
                        {"simulated", line.simulated}});
    }
    return list;
}

json regression_json(const Regression& regression) {
    json terms = json::array();
    for (const auto& term : regression.terms) {
        json entry = estimate(term.estimate);
        entry["name"] = term.name;
        entry["vif"] = maybe(term.vif);
        terms.push_back(std::move(entry));
    }
    json refused = json::array();
    for (const auto& refusal : regression.refused) {
        refused.push_back({{"terms", refusal.terms}, {"reason", refusal.reason}});
    }
    return {{"response", regression.response},
            {"group", regression.group},
            {"terms", terms},
            {"refused", refused},
            {"notes", regression.notes},
            {"r2", finite(regression.r2)},
            {"n", regression.n},
            {"simulated", regression.simulated}};
}

json sensitivity_json(const Sensitivity& sensitivity) {
    json conclusions = json::array();
    for (const auto& conclusion : sensitivity.conclusions) {
        conclusions.push_back({{"text", conclusion.text}, {"survives", conclusion.survives}});
    }
    return {{"component", sensitivity.component}, {"low", sensitivity.low},
            {"high", sensitivity.high},           {"unit", sensitivity.unit},
            {"source", sensitivity.source},       {"energy_band_j", interval(sensitivity.energy_band_j)},
            {"conclusions", conclusions}};
}

json region_json(const RunMetrics& run, const RegionMetrics& region) {
    return {{"run", run.run},
            {"host", region.host},
            {"name", region.name},
            {"index", region.index},
            {"start_ns", region.start_ns},
            {"end_ns", region.end_ns},
            {"open", region.open},
            {"samples", maybe(region.samples)},
            {"updates", maybe(region.updates)},
            {"tokens", maybe(region.tokens)},
            {"loss", maybe(region.loss)},
            {"energy_counter_j", maybe(region.energy_counter_j)},
            {"energy_integrated_j", maybe(region.energy_integrated_j)},
            {"energy_j", maybe(region.energy_j)},
            {"energy_bound_j", maybe(region.energy_bound_j)},
            {"mean_power_w", maybe(region.mean_power_w)},
            {"gpu_memory_util_pct", maybe(region.gpu_memory_util_pct)},
            {"gpu_busy_pct", maybe(region.gpu_busy_pct)},
            {"sm_util_pct", maybe(region.sm_util_pct)},
            {"simulated", region.simulated},
            {"power_profile", profile_json(region.profile)},
            {"provenance", {{"method", region.method}}}};
}

void append_attributed(json& list, const RunMetrics& run) {
    for (const AttributedKind& kind : run.attributed) {
        list.push_back({{"run", run.run},
                        {"host", kind.host},
                        {"device", kind.device},
                        {"name", kind.name},
                        {"n", kind.regions},
                        {"mean_duration_s", kind.mean_duration_s},
                        {"mean_energy_j", kind.mean_energy_j},
                        {"mean_bound_j", finite(kind.mean_bound_j)},
                        {"idle_power_w", maybe(kind.idle_power_w)},
                        {"refresh_s", kind.refresh_s},
                        {"lag_s", kind.lag_s},
                        {"window_s", kind.window_s},
                        {"timing", kind.calibrated ? "calibrated" : "fitted"}});
    }
}

template <typename Item>
json list_of(const std::vector<Item>& items, json (*convert)(const Item&)) {
    json list = json::array();
    for (const Item& item : items) {
        list.push_back(convert(item));
    }
    return list;
}

json document_without_regions(const Model& model) {
    json coverage = json::array();
    json attributed = json::array();
    for (const RunMetrics& run : model.runs) {
        append_attributed(attributed, run);
        for (const Coverage& entry : run.coverage) {
            coverage.push_back({{"run", entry.run},
                                {"host", entry.host},
                                {"component", entry.component},
                                {"device", entry.device},
                                {"covered_pct", finite(entry.covered_pct)}});
        }
    }
    return {{"schema", 1},
            {"runs", list_of(model.runs, run_json)},
            {"configurations", list_of(model.configurations, configuration_json)},
            {"laws", list_of(model.laws, law_json)},
            {"scaling", list_of(model.scaling, scaling_json)},
            {"energy_per_gpu_hour", lines_json(model.energy_per_gpu_hour, "slope_kwh")},
            {"energy_per_gpu_hour_identity", energy_per_gpu_hour_identity},
            {"energy_per_sample", lines_json(model.energy_per_sample, "slope_wh")},
            {"regressions", list_of(model.regressions, regression_json)},
            {"sensitivity", list_of(model.sensitivity, sensitivity_json)},
            {"wall_calibration", list_of(model.wall_calibration, wall_json)},
            {"least_energy", list_of(model.least_energy, least_energy_json)},
            {"trade_offs", list_of(model.trade_offs, trade_off_json)},
            {"batch_knees", list_of(model.batch_knees, knee_json)},
            {"hardware", list_of(model.hardware, hardware_json)},
            {"published", list_of(model.published, published_json)},
            {"attributed", attributed},
            {"coverage", coverage},
            {"warnings", warnings_json(model.warnings)}};
}

}  // namespace

json to_json(const Model& model) {
    json document = document_without_regions(model);
    json& regions = document["regions"] = json::array();
    for (const RunMetrics& run : model.runs) {
        for (const RegionMetrics& region : run.regions) {
            regions.push_back(region_json(run, region));
        }
    }
    return document;
}

void write_json(const Model& model, std::FILE* file) {
    const auto text = [](const json& value, int indent) {
        return value.dump(indent, ' ', false, json::error_handler_t::replace);
    };
    // Regions are most of a large study's document: each is written as it is made.
    fmt::print(file, "{{\"regions\": [");
    const char* separator = "\n";
    for (const RunMetrics& run : model.runs) {
        for (const RegionMetrics& region : run.regions) {
            fmt::print(file, "{}{}", separator, text(region_json(run, region), -1));
            separator = ",\n";
        }
    }
    fmt::print(file, "]");
    const json document = document_without_regions(model);
    for (const auto& [key, value] : document.items()) {
        fmt::print(file, ",\n{}: {}", text(key, -1), text(value, 1));
    }
    fmt::print(file, "}}\n");
}

}  // namespace joulemark::analysis
