// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/configurations.h"
#include "analysis/energy.h"
#include "core/units.h"
#include "report/terminal.h"
#include "store/summary.h"

namespace joulemark::cli {
namespace {

using analysis::Configuration;
using analysis::EnergyLine;
using analysis::Law;
using analysis::Model;
using analysis::RunMetrics;
using analysis::Value;
using nlohmann::json;
using report::level_text;
using report::number_text;
using report::plus_minus_text;
using report::rounded_text;
using report::Table;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_runs = 60;

struct Column {
    std::string_view metric, title;
};
constexpr std::array<Column, 2> footprint_columns{{{"co2e_g", "CO2e g"}, {"cost", "cost"}}};

/// Those of CO2e and cost that were asked for.
std::vector<Column> footprint_of(const Model& model) {
    std::vector<Column> asked;
    for (const Column& column : footprint_columns) {
        const auto value = analysis::metric_field(column.metric).value;
        if (std::ranges::any_of(model.runs, [&](const RunMetrics& run) { return (run.*value).has_value(); })) {
            asked.push_back(column);
        }
    }
    return asked;
}

std::string factor_text(const json& value) {
    return value.is_number() ? level_text(value.get<double>()) : store::factor_text(value);
}

std::string factors_text(const json& factors) {
    std::string text;
    for (const auto& [name, value] : factors.items()) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, factor_text(value));
    }
    return text;
}

/// The factors that tell configurations apart; what all share is `common`.
struct Varying {
    std::vector<std::string> names;
    json common = json::object();

    explicit Varying(const Model& model) {
        std::map<std::string, std::set<json>> levels;
        for (const RunMetrics& run : model.runs) {
            for (const auto& [name, value] : run.factors.items()) {
                levels[name].insert(value);
            }
        }
        for (const auto& [name, values] : levels) {
            const bool everywhere = std::ranges::all_of(
                model.runs, [&](const RunMetrics& run) { return run.factors.contains(name); });
            if (values.size() == 1 && everywhere) {
                common[name] = *values.begin();
            } else {
                names.push_back(name);
            }
        }
    }

    /// Of a group: only what distinguishes it from other groups.
    std::string text(const json& factors) const {
        json kept = json::object();
        for (const std::string& name : names) {
            if (factors.contains(name)) {
                kept[name] = factors[name];
            }
        }
        return factors_text(kept);
    }
};

/// ", local_batch=64": which of several groups; "" for the only one.
std::string where_text(const Varying& varying, const json& group) {
    const std::string text = varying.text(group);
    return text.empty() ? "" : ", " + text;
}

std::string factor_cell(const json& factors, const std::string& name) {
    return factors.contains(name) ? factor_text(factors[name]) : "-";
}

std::string cell(const Value& value) {
    return number_text(value.value_or(nan));
}

std::string level_cell(const Value& value) {
    return level_text(value.value_or(nan));
}

/// "12.34 ± 0.05", the half-width of the 95 % interval; "12.34 (1 run)" for a preliminary mean, "(mean of 5)"
/// for an imported one whose scatter is not given.
std::string summary_text(const stats::Summary& summary) {
    return summary.ci95    ? plus_minus_text(summary.mean, summary.ci95->half_width())
           : summary.n > 1 ? fmt::format("{} (mean of {})", number_text(summary.mean), summary.n)
                           : number_text(summary.mean) + " (1 run)";
}

std::string mean_cell(const Configuration& configuration, std::string_view metric) {
    const auto found = configuration.metrics.find(metric);
    return found == configuration.metrics.end() ? "-" : summary_text(found->second);
}

/// "0.2652 [0.2514, 0.2790]", all rounded alike.
std::string estimate_text(const stats::Estimate& estimate) {
    if (!estimate.ci95) {
        return number_text(estimate.value);
    }
    const auto [low, high] = *estimate.ci95;
    const bool open = !std::isfinite(low) || !std::isfinite(high);
    const double half = open ? std::abs(estimate.value) / 100 : (high - low) / 2;
    const auto end = [&](double value) {
        return std::isfinite(value) ? rounded_text(value, estimate.value, half) : std::string("open");
    };
    return fmt::format("{} [{}, {}]", rounded_text(estimate.value, estimate.value, half), end(low), end(high));
}

std::string section(std::string_view title, const Table& table, std::string_view note = "") {
    if (table.empty()) {
        return "";
    }
    return fmt::format("\n{}\n{}{}", title, table.text(), note.empty() ? "" : fmt::format("{}\n", note));
}

std::string runs_text(const Model& model, const Varying& varying) {
    if (model.runs.size() > most_runs) {
        return fmt::format("\n{} runs: too many to list, see --json or joulemark show\n", model.runs.size());
    }
    std::vector<std::string> header{"run", "status"};
    header.insert(header.end(), varying.names.begin(), varying.names.end());
    for (const char* name :
         {"epoch s", "samples/s", "energy J", "J/sample", "kWh/GPUh", "power W", "busy %"}) {
        header.push_back(name);
    }
    const auto footprint = footprint_of(model);
    for (const Column& column : footprint) {
        header.emplace_back(column.title);
    }
    Table table(header);
    for (const RunMetrics& run : model.runs) {
        std::string status = run.status;
        status += run.simulated ? ", simulated" : "";
        status += run.estimated ? ", estimated" : "";
        std::vector<std::string> row{run.run, status};
        for (const std::string& name : varying.names) {
            row.push_back(factor_cell(run.factors, name));
        }
        for (const Value& value : {run.epoch_time_s, run.samples_per_s, run.energy_j, run.joule_per_sample,
                                   run.energy_per_gpu_hour_kwh, run.mean_power_w, run.gpu_busy_pct}) {
            row.push_back(cell(value));
        }
        for (const Column& column : footprint) {
            row.push_back(cell(run.*analysis::metric_field(column.metric).value));
        }
        table.add(row);
    }
    return section("Runs", table);
}

std::string configurations_text(const Model& model, const Varying& varying) {
    std::vector<std::string> header = varying.names;
    std::vector<Column> columns{{"epoch_time_s", "epoch s"},
                                {"epoch_energy_j", "epoch energy J"},
                                {"energy_j", "energy J"},
                                {"joule_per_sample", "J/sample"},
                                {"energy_per_gpu_hour_kwh", "kWh/GPUh"}};
    std::ranges::move(footprint_of(model), std::back_inserter(columns));
    header.push_back("n");
    for (const Column& column : columns) {
        header.emplace_back(column.title);
    }
    Table table(header);
    const auto is_simulated = [](const Configuration& configuration) {
        return analysis::any_simulated({&configuration});
    };
    const auto simulated = std::ranges::count_if(model.configurations, is_simulated);
    const bool mixed = simulated < std::ssize(model.configurations);
    for (const Configuration& configuration : model.configurations) {
        std::vector<std::string> row;
        for (const std::string& name : varying.names) {
            row.push_back(factor_cell(configuration.factors, name));
        }
        row.push_back(fmt::format("{}{}{}", configuration.repeats(),
                                  configuration.repeats() > configuration.runs.size() ? ", imported mean" : "",
                                  mixed && is_simulated(configuration) ? ", simulated" : ""));
        for (const Column& column : columns) {
            row.push_back(mean_cell(configuration, column.metric));
        }
        table.add(row);
    }
    return section(
        fmt::format("Configurations{} (mean ± half of the 95 % interval)", mixed ? "" : ", simulated"),
        table);
}

std::string scaling_name(const std::string& scaling) {
    return scaling == "strong" ? "Strong scaling (global batch and data set fixed)"
           : scaling == "weak" ? "Weak scaling (local batch fixed, one size of the data set)"
                               : "Scaling (one size of the data set)";
}

std::string scaling_text(const Model& model, const Varying& varying) {
    std::string text;
    for (const auto& scaling : model.scaling) {
        Table table({"gpus", "epoch s", "speed-up", "efficiency", "energy ratio", ""});
        for (const auto& row : scaling.rows) {
            table.add({level_text(row.gpus), number_text(row.epoch_time_s), number_text(row.speed_up),
                       number_text(row.efficiency), cell(row.energy_ratio),
                       row.preliminary ? "preliminary" : ""});
        }
        const std::string group = varying.text(scaling.group);
        text += section(
            fmt::format("{}, against {:.0f} GPU{}{}", scaling_name(scaling.scaling), scaling.baseline_gpus,
                        scaling.baseline_gpus == 1 ? "" : "s", group.empty() ? "" : ": " + group),
            table);
    }
    return text;
}

std::string parameters_text(const stats::LawFit& fit) {
    const auto& names = stats::info(fit.form).parameters;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < names.size(); ++i) {
        parts.push_back(fmt::format("{} = {}", names[i], estimate_text(fit.parameters[i])));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string laws_text(const Model& model, const Varying& varying) {
    Table table({"", "response", "over", "where", "levels", "law", "parameters [95 % interval]", "R2", "AICc",
                 "leave-one-out %"});
    std::string unfit;
    for (const Law& law : model.laws) {
        if (law.response == "energy_j") {
            continue;  // whole runs: in --json
        }
        const std::string over =
            law.scaling.empty() ? law.factor : fmt::format("{} ({})", law.factor, law.scaling);
        std::vector<std::string> row{law.selected ? "*" : "", law.response, over, varying.text(law.group),
                                     std::to_string(law.n_levels)};
        if (law.fit) {
            const Value error = law.fit->loo_rmse ? Value(100 * *law.fit->loo_rmse) : std::nullopt;
            row.insert(row.end(), {std::string(stats::info(law.fit->form).formula), parameters_text(*law.fit),
                                   fmt::format("{:.4f}", law.fit->r2), cell(law.fit->aicc), cell(error)});
            const std::string why = law.selected || law.reason.empty()
                                        ? ""
                                        : fmt::format("{} over {}{}: {}\n", law.response, over,
                                                      where_text(varying, law.group), law.reason);
            if (!unfit.ends_with(why)) {  // once for all forms of a series
                unfit += why;
            }
        } else {
            row.push_back(law.reason);
        }
        table.add(row);
    }
    return section(
               "Laws", table,
               "* selected: least AICc, leave-one-out error among equals. Fitted to configurations, not to single "
               "runs.") +
           unfit;
}

std::string lines_text(const std::vector<EnergyLine>& lines, std::string_view title, std::string_view unit,
                       std::string_view note) {
    Table table({"series", "n", fmt::format("slope {} [95 % interval]", unit), "intercept kWh", "R2",
                 "weighted slope"});
    for (const EnergyLine& line : lines) {
        table.add({line.pooled ? "all" : factors_text(line.group), std::to_string(line.n),
                   estimate_text(line.slope), number_text(line.intercept.value),
                   fmt::format("{:.5f}", line.r2),
                   line.weighted_slope ? estimate_text(*line.weighted_slope) : "-"});
    }
    return section(title, table, note);
}

std::string regressions_text(const Model& model, const Varying& varying) {
    std::string text;
    for (const analysis::Regression& regression : model.regressions) {
        Table table({"term", "effect [95 % interval]", "variance inflation"});
        for (const auto& term : regression.terms) {
            table.add({term.name, estimate_text(term.estimate), term.vif ? number_text(*term.vif) : ""});
        }
        const std::string group = varying.text(regression.group);
        text += section(fmt::format("{} on {} configurations{} (R2 {:.4f})", regression.response,
                                    regression.n, group.empty() ? "" : ", " + group, regression.r2),
                        table);
        for (const auto& refusal : regression.refused) {
            text += fmt::format("refused: {}: {}\n", fmt::join(refusal.terms, " and "), refusal.reason);
        }
        for (const std::string& note : regression.notes) {
            text += fmt::format("note: {}\n", note);
        }
    }
    return text;
}

std::string least_energy_text(const Model& model, const Varying& varying) {
    Table table({"factor", "where", "measured least at", "epoch energy J", "fitted least at", "95 % interval",
                 "epoch energy J", "fit is off by up to", "levels"});
    for (const analysis::LeastEnergy& least : model.least_energy) {
        std::vector<std::string> row{least.factor, varying.text(least.group), level_text(least.measured_at),
                                     summary_text(least.measured)};
        if (const auto& optimum = least.optimum) {
            row.insert(row.end(), {number_text(optimum->at) + (optimum->interior ? "" : " (end of the levels)"),
                                   fmt::format("[{}, {}]", number_text(optimum->ci95.low),
                                               number_text(optimum->ci95.high)),
                                   number_text(optimum->value)});
        } else {
            row.insert(row.end(), {"-", "-", "-"});
        }
        row.push_back(fmt::format("{:.1f} %", 100 * std::abs(least.departure)));
        row.push_back(std::to_string(least.n_levels));
        table.add(row);
    }
    std::string text = section("Least energy", table,
                               "Fitted: from the laws of epoch time and mean power; the interval repeats their "
                               "selection.");
    for (const analysis::LeastEnergy& least : model.least_energy) {
        if (!least.reason.empty()) {
            text += fmt::format("not fitted: {}{}: {}\n", least.factor, where_text(varying, least.group),
                                least.reason);
        }
    }
    return text;
}

std::string knees_text(const Model& model, const Varying& varying) {
    Table table({"quality", "where", "knee at global batch", "worse from", ""});
    for (const analysis::BatchKnee& knee : model.batch_knees) {
        table.add({fmt::format("{} ({} is better)", knee.quality, knee.direction), varying.text(knee.group),
                   level_cell(knee.knee), level_cell(knee.beyond), knee.reason});
    }
    return section("Large-batch knee", table);
}

std::string hardware_text(const Model& model, const Varying& varying) {
    std::string text;
    for (const analysis::HardwareComparison& comparison : model.hardware) {
        Table table({comparison.factor, "time ratio", "energy ratio"});
        for (const auto& row : comparison.rows) {
            table.add(
                {level_text(row.level), estimate_text(row.time_ratio), estimate_text(row.energy_ratio)});
        }
        const std::string group = varying.text(comparison.group);
        text += section(fmt::format("{} over {}{}", comparison.first, comparison.second,
                                    group.empty() ? "" : ": " + group),
                        table);
        for (const auto& crossing : comparison.crossings) {
            text +=
                fmt::format("the order of energies turns between {} and {}{}\n", level_text(crossing.from),
                            level_text(crossing.to), crossing.significant ? "" : " (not significant)");
        }
    }
    return text;
}

/// Energy of regions about as short as their sensor's refresh.
std::string attributed_text(const Model& model) {
    Table table({"run", "device", "region", "n", "mean s", "mean J", "95 %", "mean W", "refresh ms", "lag ms",
                 "window ms"});
    for (const RunMetrics& run : model.runs) {
        for (const analysis::AttributedKind& kind : run.attributed) {
            table.add({run.run, kind.device, kind.name, fmt::format("{}", kind.regions),
                       number_text(kind.mean_duration_s), number_text(kind.mean_energy_j),
                       fmt::format("± {}", number_text(kind.mean_bound_j)),
                       number_text(kind.mean_energy_j / kind.mean_duration_s),
                       fmt::format("{:.1f}", 1e3 * kind.refresh_s), fmt::format("{:.1f}", 1e3 * kind.lag_s),
                       fmt::format("{:.1f}{}", 1e3 * kind.window_s, kind.calibrated ? "" : " (fitted)")});
        }
    }
    return section("Short regions, energy attributed", table);
}

std::string sensitivity_text(const Model& model) {
    Table table({"not measured", "range", "", "energy of all runs, kWh", "conclusions that survive"});
    for (const analysis::Sensitivity& sensitivity : model.sensitivity) {
        const auto survive =
            std::ranges::count(sensitivity.conclusions, true, &analysis::Sensitivity::Conclusion::survives);
        table.add({sensitivity.component,
                   fmt::format("{} to {}", number_text(sensitivity.low), number_text(sensitivity.high)),
                   sensitivity.unit,
                   fmt::format("{} to {}", number_text(kwh(sensitivity.energy_band_j.low)),
                               number_text(kwh(sensitivity.energy_band_j.high))),
                   sensitivity.conclusions.empty()
                       ? "-"
                       : fmt::format("{} of {}", survive, sensitivity.conclusions.size())});
    }
    std::string text = section("Sensitivity to what was not measured", table);
    for (const analysis::Sensitivity& sensitivity : model.sensitivity) {
        for (const auto& conclusion : sensitivity.conclusions) {
            if (!conclusion.survives) {
                text += fmt::format("with {} unmeasured, not certain: {}\n", sensitivity.component, conclusion.text);
            }
        }
    }
    return text;
}

std::string published_text(const Model& model, const Varying& varying) {
    Table table({"metric", "here", "measured", "published", "source", ""});
    for (const analysis::PublishedComparison& one : model.published) {
        const std::string range =
            one.published.low == one.published.high
                ? number_text(one.published.low)
                : fmt::format("{} to {}", number_text(one.published.low), number_text(one.published.high));
        table.add({one.metric, varying.text(one.factors), number_text(one.value.mean), range, one.source,
                   one.comparable ? one.note : "not comparable: " + one.reason});
    }
    return section("Published numbers", table);
}

std::string warnings_text(const Model& model) {
    if (model.warnings.empty()) {
        return "";
    }
    std::string text = "\nWarnings\n";
    for (const auto& warning : model.warnings) {
        text += fmt::format("  {}: {}\n", warning.code, warning.text);
    }
    return text;
}

/// What the energies are made of, once per different answer.
std::string contents_text(const Model& model) {
    std::map<std::string, std::size_t> contents;
    for (const RunMetrics& run : model.runs) {
        ++contents[run.provenance["energy_j"].value("text", "")];
    }
    std::string text;
    for (const auto& [sentence, count] : contents) {
        text += fmt::format("Energy{}: {}\n", contents.size() == 1 ? "" : fmt::format(" of {} runs", count),
                            sentence);
    }
    return text;
}

}  // namespace

std::string analysis_text(const Model& model) {
    if (model.runs.empty()) {
        return "no runs yet\n";
    }
    const Varying varying(model);
    const auto usable = std::ranges::count_if(model.runs, &RunMetrics::usable);
    const auto simulated = std::ranges::count(model.runs, true, &RunMetrics::simulated);
    std::string text = fmt::format("{} run{}, {} ok{}, {} configuration{}\n", model.runs.size(),
                                   model.runs.size() == 1 ? "" : "s", usable,
                                   simulated > 0 ? fmt::format(", {} simulated", simulated) : "",
                                   model.configurations.size(), model.configurations.size() == 1 ? "" : "s");
    if (!varying.common.empty()) {
        text += fmt::format("All: {}\n", factors_text(varying.common));
    }
    text += contents_text(model);
    text += runs_text(model, varying);
    text += configurations_text(model, varying);
    text += attributed_text(model);
    text += scaling_text(model, varying);
    text += laws_text(model, varying);
    text += lines_text(model.energy_per_gpu_hour, "Energy over GPU hours", "kWh/GPUh",
                       analysis::energy_per_gpu_hour_identity);
    text += lines_text(model.energy_per_sample, "Energy over samples of the data set, whole runs",
                       "Wh/sample", "");
    text += least_energy_text(model, varying);
    text += regressions_text(model, varying);
    text += knees_text(model, varying);
    text += hardware_text(model, varying);
    text += sensitivity_text(model);
    text += published_text(model, varying);
    text += warnings_text(model);
    return text;
}

}  // namespace joulemark::cli
