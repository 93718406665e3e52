// SPDX-License-Identifier: Apache-2.0
#include "study/dry_run.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "core/csv.h"
#include "core/json.h"
#include "core/units.h"
#include "report/terminal.h"
#include "study/expectation.h"

namespace joulemark::study {
namespace {

using nlohmann::json;

struct Totals {
    std::size_t skipped = 0, without_gpu_hours = 0, without_energy = 0;
    double gpu_hours = 0;
    Range energy_kwh;
    bool energy_is_bound = false;
    std::set<std::string> sources;

    void add(const PlannedRun& run, const Expected& expected) {
        if (!run.skipped.empty()) {
            ++skipped;
            return;
        }
        gpu_hours += expected.gpu_hours.value_or(0);
        without_gpu_hours += expected.gpu_hours ? 0 : 1;
        without_energy += expected.energy_kwh ? 0 : 1;
        if (expected.gpu_hours) {
            sources.insert("GPU hours: expected, from " + expected.gpu_hours_source);
        }
        if (expected.energy_kwh) {
            energy_kwh.low += expected.energy_kwh->low;
            energy_kwh.high += expected.energy_kwh->high;
            energy_is_bound = energy_is_bound || expected.energy_is_bound;
            sources.insert("energy: expected, from " + expected.energy_source);
        }
    }
};

std::string energy_text(const Range& range, bool is_bound) {
    if (is_bound && range.low == 0) {
        return "<= " + report::number_text(range.high);
    }
    return range.low == range.high
               ? report::number_text(range.low)
               : fmt::format("{} .. {}", report::number_text(range.low), report::number_text(range.high));
}

json range_json(const std::optional<Range>& range) {
    return range ? json{range->low, range->high} : json();
}

json text_or_null(const std::string& text) {
    return text.empty() ? json() : json(text);
}

/// The factors of any run, in the order of their first appearance: the columns of the table.
std::vector<std::string> columns(const std::vector<PlannedRun>& runs) {
    std::vector<std::string> names;
    for (const PlannedRun& run : runs) {
        for (const auto& [factor, level] : run.factors.levels()) {
            if (std::ranges::find(names, factor) == names.end()) {
                names.push_back(factor);
            }
        }
    }
    return names;
}

const char* time_source(const Remaining& rest) {
    return rest.time_is_expected ? "the study's expect, one run after the other, without cooling down"
                                 : "the finished runs";
}

/// What the results directory still lacks.
std::string remaining_text(const Remaining& rest) {
    std::string text = fmt::format("to be made: {} runs, {} are done", rest.left, rest.done);
    if (rest.left > 0 && rest.without_time == 0) {
        text += fmt::format("; elapsed about {} (from {})", report::duration_text(rest.wall_s), time_source(rest));
    }
    if (rest.left > 0 && rest.disk_bytes) {
        text += fmt::format("; about {} on disk (from the finished runs)", bytes_text(*rest.disk_bytes));
    }
    return text + "\n";
}

}  // namespace

json dry_run_json(const Study& study, const std::vector<PlannedRun>& runs, const Remaining& rest,
                  const std::vector<std::string>& problems) {
    json result{{"study", study.name}, {"runs", json::array()}};
    Totals totals;
    for (const PlannedRun& run : runs) {
        const Expected expected = expect(run);
        totals.add(run, expected);
        result["runs"].push_back(
            {{"run", run.id},
             {"position", run.position},
             {"repeat", run.repeat},
             {"series", text_or_null(run.series->name)},
             {"workload", run.workload->name},
             {"factors", run.factors.json()},
             {"gpus", run.gpus},
             {"nodes",
              study.gpus_per_node ? json(launch::nodes_needed(run.gpus, *study.gpus_per_node)) : json()},
             {"gpu_hours", or_null(expected.gpu_hours)},
             {"gpu_hours_source", text_or_null(expected.gpu_hours_source)},
             {"energy_kwh", range_json(expected.energy_kwh)},
             {"energy_is_bound", expected.energy_is_bound},
             {"energy_source", text_or_null(expected.energy_source)},
             {"skipped", text_or_null(run.skipped)},
             {"command", run.command}});
    }
    result["totals"] = {{"runs", runs.size()},
                        {"skipped", totals.skipped},
                        {"gpu_hours", totals.gpu_hours},
                        {"runs_without_gpu_hours", totals.without_gpu_hours},
                        {"energy_kwh", range_json(totals.energy_kwh)},
                        {"energy_is_bound", totals.energy_is_bound},
                        {"runs_without_energy", totals.without_energy}};
    const bool has_elapsed = rest.without_time == 0;
    result["remaining"] = {{"done", rest.done},
                           {"left", rest.left},
                           {"elapsed_s", has_elapsed ? json(rest.wall_s) : json()},
                           {"elapsed_source", has_elapsed ? json(time_source(rest)) : json()},
                           {"disk_bytes", or_null(rest.disk_bytes)}};
    result["sources"] = totals.sources;
    result["problems"] = problems;
    return result;
}

std::string dry_run_text(const Study& study, const std::vector<PlannedRun>& runs, const Remaining& rest,
                         const std::vector<std::string>& problems) {
    const std::vector<std::string> factors = columns(runs);
    std::vector<std::string> header{"#", "run"};
    header.insert(header.end(), factors.begin(), factors.end());
    header.insert(header.end(), {"repeat", "GPU hours", "kWh"});
    report::Table table(header);
    Totals totals;
    for (const PlannedRun& run : runs) {
        const Expected expected = expect(run);
        totals.add(run, expected);
        std::vector<std::string> row{std::to_string(run.position), run.id};
        for (const std::string& factor : factors) {
            const Level* level = run.factors.find(factor);
            row.push_back(level == nullptr ? "-" : level->text);
        }
        row.push_back(std::to_string(run.repeat));
        if (run.skipped.empty()) {
            row.push_back(expected.gpu_hours ? report::number_text(*expected.gpu_hours) : "unknown");
            row.push_back(expected.energy_kwh ? energy_text(*expected.energy_kwh, expected.energy_is_bound)
                                              : "unknown");
        } else {
            row.insert(row.end(), {"skipped: " + run.skipped, "-"});
        }
        table.add(std::move(row));
    }
    const std::size_t possible = runs.size() - totals.skipped;
    std::string text = table.text();
    text += fmt::format("\nstudy {}: {} runs, {} of them skipped\n", study.name, runs.size(), totals.skipped);
    if (totals.without_gpu_hours < possible) {
        text += fmt::format("expected: {} GPU hours over {} runs", report::number_text(totals.gpu_hours),
                            possible - totals.without_gpu_hours);
    } else {
        text += "expected: GPU hours unknown (the study file has no 'expect' block)";
    }
    if (totals.without_energy < possible) {
        text += fmt::format(", {} kWh over {} runs", energy_text(totals.energy_kwh, totals.energy_is_bound),
                            possible - totals.without_energy);
    }
    text += "\n" + remaining_text(rest);
    for (const std::string& source : totals.sources) {
        text += source + "\n";
    }
    for (const std::string& problem : problems) {
        text += "problem: " + problem + "\n";
    }
    return text;
}

std::optional<double> parse_energy_j(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 7> units{{{"MWh", 1000 * joules_per_kwh},
                                                                        {"kWh", joules_per_kwh},
                                                                        {"Wh", joules_per_kwh / 1000},
                                                                        {"GJ", 1e9},
                                                                        {"MJ", 1e6},
                                                                        {"kJ", 1e3},
                                                                        {"J", 1}}};
    for (const auto& [unit, joules] : units) {
        if (text.ends_with(unit)) {
            text.remove_suffix(unit.size());
            text = text.substr(0, text.find_last_not_of(' ') + 1);
            const auto number = csv::number(text);
            return number && *number > 0 && *number < 1e18 ? std::optional(*number * joules) : std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace joulemark::study
