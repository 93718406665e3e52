// SPDX-License-Identifier: Apache-2.0
#include "study/plan_file.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "study/run_state.h"

namespace joulemark::study {
namespace {

using nlohmann::json;

/// All that changes what a run measures, and is the same for all of them. timeout_s is not: it only ends
/// runs.
json settings(const Study& study) {
    json result{{"train_seed", study.vary_train_seed ? "vary" : "fixed"},
                {"order", study.random_order ? "random" : "as-listed"},
                {"seed", study.seed},
                {"launcher", launch::name_of(study.launcher)},
                {"launcher_args", study.launcher_arguments},
                {"gpus_per_node", or_null(study.gpus_per_node)},
                {"rate_hz", or_null(study.rate_hz)},
                {"idle_s", or_null(study.idle_s)},
                {"cooldown_c", or_null(study.cooldown_c)},
                {"env", study.environment},
                {"simulation", nullptr}};
    if (study.simulation) {
        result["simulation"] = {{"accelerator", study.simulation->accelerator},
                                {"gpus_per_node", study.simulation->gpus_per_node},
                                {"seed", study.simulation->seed},
                                {"counter_latency_ms", study.simulation->counter_latency_ms},
                                {"truth", study.simulation->truth}};
    }
    return result;
}

json run_json(const PlannedRun& run) {
    return {{"run", run.id},
            {"position", run.position},
            {"repeat", run.repeat},
            {"series", run.series->name},
            {"workload", run.workload->name},
            {"warmup_epochs", run.workload->warmup_epochs},
            {"factors", run.factors.json()},
            {"seed", run.seed},
            {"command", run.command},
            {"skipped", run.skipped.empty() ? json() : json(run.skipped)}};
}

/// What must not differ between two calls, of one planned run. A run that was skipped may have become
/// possible.
bool same_run(const json& before, const json& now) {
    const bool compare_command = before.at("skipped").is_null() && now.at("skipped").is_null();
    return before.at("factors") == now.at("factors") && before.at("seed") == now.at("seed") &&
           before.at("warmup_epochs") == now.at("warmup_epochs") &&
           (!compare_command || before.at("command") == now.at("command"));
}

}  // namespace

json plan_json(const Study& study, const std::vector<PlannedRun>& runs) {
    json series = json::array();
    for (const Series& one : study.series) {
        series.push_back({{"name", one.name},
                          {"design", one.design == Design::one_factor ? "one-factor" : "full-factorial"},
                          {"baseline", one.baseline.json()},
                          {"repeats", one.repeats}});
    }
    json result{{"schema", 1},
                {"study", study.name},
                {"file", study.file.string()},
                {"text", files::read(study.file).value_or("")},
                {"settings", settings(study)},
                {"series", series},
                {"runs", json::array()}};
    for (const PlannedRun& run : runs) {
        result["runs"].push_back(run_json(run));
    }
    return result;
}

std::vector<std::string> continue_plan(const std::filesystem::path& directory, const Study& study,
                                       std::vector<PlannedRun>& runs) {
    const auto file = directory / "study.json";
    const auto text = files::read(file);
    if (!text) {
        return {};
    }
    const auto changed = [&](const std::string& what) {
        return bad_input(
            "{} has changed since {} was begun ({}): use another directory with -o, or undo the change",
            study.file.string(), directory.string(), what);
    };
    std::map<std::string, int> positions;
    try {
        const json before = json::parse(*text);
        std::map<std::string, const PlannedRun*> planned;
        for (const PlannedRun& run : runs) {
            planned[run.id] = &run;
        }
        std::vector<std::string> gone;
        bool has_results = false;
        for (const json& run : before.at("runs")) {
            const auto id = run.at("run").get<std::string>();
            has_results = has_results || run_state(directory, id).kind == RunState::Kind::done;
            if (!planned.contains(id)) {
                gone.push_back(id);
            }
        }
        if (!has_results) {
            return gone;
        }
        if (before.at("study") != study.name) {
            throw bad_input("{} holds the study '{}', not '{}': use another directory with -o",
                            directory.string(), before.at("study").get<std::string>(), study.name);
        }
        const json now = settings(study);
        for (const auto& [key, value] : now.items()) {
            if (before.at("settings").at(key) != value) {
                throw changed(
                    fmt::format("{} was {} and is {}", key, before["settings"][key].dump(), value.dump()));
            }
        }
        if (!gone.empty()) {
            throw changed(fmt::format("run {} is gone", gone.front()));
        }
        for (const json& run : before.at("runs")) {
            const auto id = run.at("run").get<std::string>();
            if (!same_run(run, run_json(*planned.at(id)))) {
                throw changed(fmt::format("run {} would be another one", id));
            }
            positions[id] = run.at("position").get<int>();
        }
    } catch (const json::exception&) {
        throw bad_input(
            "{} is damaged: use another directory with -o, or remove it to begin anew from the runs",
            file.string());
    }
    std::ranges::stable_sort(runs, {}, [&](const PlannedRun& run) {
        const auto found = positions.find(run.id);
        return found != positions.end() ? found->second : static_cast<int>(positions.size()) + run.position;
    });
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].position = static_cast<int>(i) + 1;
    }
    return {};
}

void write_plan(const std::filesystem::path& directory, const Study& study,
                const std::vector<PlannedRun>& runs) {
    files::write_atomically(directory / "study.json", plan_json(study, runs).dump(1) + "\n");
}

}  // namespace joulemark::study
