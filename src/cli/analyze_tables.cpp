// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/energy.h"
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
using report::number_text;
using report::Table;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_runs = 60;

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
            const bool everywhere =
                std::ranges::all_of(model.runs, [&](const RunMetrics& run) { return run.factors.contains(name); });
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
        return kept.empty() ? "" : store::factors_text(kept);
    }
};

std::string factor_cell(const json& factors, const std::string& name) {
    return factors.contains(name) ? store::factor_text(factors[name]) : "-";
}

std::string cell(const Value& value) { return number_text(value.value_or(nan)); }

/// "12.34 ± 0.05", the half-width of the 95 % interval; "12.34 (1 run)" for a preliminary mean.
std::string mean_cell(const Configuration& configuration, std::string_view metric) {
    const auto found = configuration.metrics.find(metric);
    if (found == configuration.metrics.end()) {
        return "-";
    }
    const std::string mean = number_text(found->second.mean);
    return found->second.ci95 ? fmt::format("{} ± {}", mean, number_text(found->second.ci95->half_width()))
                              : mean + " (1 run)";
}

std::string estimate_text(const stats::Estimate& estimate) {
    const auto end = [](double value) { return std::isfinite(value) ? number_text(value) : std::string("open"); };
    return estimate.ci95 ? fmt::format("{} [{}, {}]", number_text(estimate.value), end(estimate.ci95->low),
                                       end(estimate.ci95->high))
                         : number_text(estimate.value);
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
    for (const char* name : {"epoch s", "samples/s", "energy J", "J/sample", "kWh/GPUh", "power W", "busy %"}) {
        header.push_back(name);
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
        table.add(row);
    }
    return section("Runs", table);
}

std::string configurations_text(const Model& model, const Varying& varying) {
    std::vector<std::string> header = varying.names;
    for (const char* name : {"n", "epoch s", "epoch energy J", "energy J", "J/sample", "kWh/GPUh"}) {
        header.push_back(name);
    }
    Table table(header);
    for (const Configuration& configuration : model.configurations) {
        std::vector<std::string> row;
        for (const std::string& name : varying.names) {
            row.push_back(factor_cell(configuration.factors, name));
        }
        row.push_back(std::to_string(configuration.runs.size()));
        for (const char* metric :
             {"epoch_time_s", "epoch_energy_j", "energy_j", "joule_per_sample", "energy_per_gpu_hour_kwh"}) {
            row.push_back(mean_cell(configuration, metric));
        }
        table.add(row);
    }
    return section("Configurations (mean ± half of the 95 % interval)", table);
}

std::string scaling_name(const std::string& scaling) {
    return scaling == "strong" ? "Strong scaling (global batch fixed)"
           : scaling == "weak" ? "Weak scaling (local batch fixed)"
                               : "Scaling";
}

std::string scaling_text(const Model& model, const Varying& varying) {
    std::string text;
    for (const auto& scaling : model.scaling) {
        Table table({"gpus", "epoch s", "speed-up", "efficiency", "energy ratio", ""});
        for (const auto& row : scaling.rows) {
            table.add({number_text(row.gpus), number_text(row.epoch_time_s), number_text(row.speed_up),
                       number_text(row.efficiency), cell(row.energy_ratio), row.preliminary ? "preliminary" : ""});
        }
        const std::string group = varying.text(scaling.group);
        text += section(fmt::format("{}, against {:.0f} GPU{}{}", scaling_name(scaling.scaling), scaling.baseline_gpus,
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
    for (const Law& law : model.laws) {
        if (law.response == "energy_j") {
            continue;  // whole runs: in --json
        }
        const std::string over = law.scaling.empty() ? law.factor : fmt::format("{} ({})", law.factor, law.scaling);
        std::vector<std::string> row{law.selected ? "*" : "", law.response, over, varying.text(law.group),
                                     std::to_string(law.n_levels)};
        if (law.fit) {
            const Value error = law.fit->loo_rmse ? Value(100 * *law.fit->loo_rmse) : std::nullopt;
            row.insert(row.end(), {std::string(stats::info(law.fit->form).formula), parameters_text(*law.fit),
                                   fmt::format("{:.4f}", law.fit->r2), cell(law.fit->aicc), cell(error)});
        } else {
            row.push_back(law.reason);
        }
        table.add(row);
    }
    return section("Laws", table,
                   "* selected: least AICc, leave-one-out error among equals. Fitted to configurations, not to single "
                   "runs.");
}

std::string lines_text(const std::vector<EnergyLine>& lines, std::string_view title,
                       std::string_view unit, std::string_view note) {
    Table table({"series", "n", fmt::format("slope {} [95 % interval]", unit), "intercept kWh", "R2", "weighted slope"});
    for (const EnergyLine& line : lines) {
        table.add({line.pooled ? "all" : store::factors_text(line.group), std::to_string(line.n),
                   estimate_text(line.slope), number_text(line.intercept.value), fmt::format("{:.5f}", line.r2),
                   line.weighted_slope ? estimate_text(*line.weighted_slope) : "-"});
    }
    return section(title, table, note);
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
        text += fmt::format("Energy{}: {}\n", contents.size() == 1 ? "" : fmt::format(" of {} runs", count), sentence);
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
    std::string text = fmt::format("{} runs, {} of them ok, {} configurations\n", model.runs.size(), usable,
                                   model.configurations.size());
    if (!varying.common.empty()) {
        text += fmt::format("All: {}\n", store::factors_text(varying.common));
    }
    text += contents_text(model);
    text += runs_text(model, varying);
    text += configurations_text(model, varying);
    text += scaling_text(model, varying);
    text += laws_text(model, varying);
    text += lines_text(model.energy_per_gpu_hour, "Energy over GPU hours", "kWh/GPUh",
                       analysis::energy_per_gpu_hour_identity);
    text += lines_text(model.energy_per_sample, "Energy over samples of the data set, whole runs", "Wh/sample",
                       "");
    text += warnings_text(model);
    return text;
}

}  // namespace joulemark::cli
