// SPDX-License-Identifier: Apache-2.0
// From YAML to a Study; design.cpp turns that into runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/files.h"
#include "study/placeholder.h"
#include "study/study.h"
#include "study/workload_file.h"
#include "study/yaml_map.h"

namespace joulemark::study {
namespace {

constexpr std::array<std::string_view, 21> study_keys{
    "study",   "repeats", "train_seed", "order",     "seed",     "workload",      "workloads",
    "factors", "design",  "baseline",   "series",    "launcher", "launcher_args", "gpus_per_node",
    "rate_hz", "idle_s",  "cooldown_c", "timeout_s", "env",      "simulation",    "expect"};
constexpr std::array<std::string_view, 8> series_keys{"name",   "workload", "workloads", "factors",
                                                      "design", "baseline", "repeats",   "expect"};
constexpr std::array<std::string_view, 5> simulation_keys{"accelerator", "gpus_per_node", "seed",
                                                          "counter_latency_ms", "truth"};
constexpr std::array<std::string_view, 5> factor_names{"gpus", "power_cap_w", "sm_clock_mhz", "local_batch",
                                                       "global_batch"};
/// What a command can say in braces besides the factors; samples, dataset and batches only where they are
/// known.
constexpr std::array<std::string_view, 8> run_placeholders{"gpus",   "epochs", "warmup_epochs", "seed",
                                                           "repeat", "run",    "series",        "workload"};

Level read_level(const YamlMap& map, std::string_view factor, const YAML::Node& node) {
    if (!node.IsScalar() || node.Scalar().empty()) {
        throw map.error(node, "a level of '{}' must be a number or a text", factor);
    }
    Level level(node.Scalar());
    const bool is_known = std::ranges::find(factor_names, factor) != factor_names.end();
    const bool is_count = is_known && factor != "power_cap_w" && factor != "sm_clock_mhz";
    if (is_known && (!level.number || *level.number <= 0)) {
        throw map.error(node, "a level of '{}' must be a positive number, not '{}'", factor, node.Scalar());
    }
    if (is_count && (*level.number != std::floor(*level.number) || *level.number > 1e9)) {
        throw map.error(node, "a level of '{}' must be a whole number, not '{}'", factor, node.Scalar());
    }
    return level;
}

bool mentions(const Workload& workload, std::string_view name) {
    const auto in = [&](const std::string& word) {
        const auto names = placeholders(word);
        return std::ranges::find(names, name) != names.end();
    };
    return std::ranges::any_of(workload.command, in) || std::ranges::any_of(workload.arguments, in);
}

std::vector<Factor> read_factors(const YamlMap& owner, const std::vector<Workload>& workloads) {
    std::vector<Factor> factors;
    if (!owner.has("factors")) {
        return factors;
    }
    const YamlMap map(owner.node("factors"), owner.file(), "'factors'");
    for (const auto& entry : map.entries()) {
        const bool is_known = std::ranges::find(factor_names, entry.key) != factor_names.end();
        if (entry.key == "workload") {
            throw map.error(entry.key_node,
                            "'workload' is no factor of its own: list the 'workloads' instead");
        }
        if (!is_known &&
            !std::ranges::any_of(workloads, [&](const auto& w) { return mentions(w, entry.key); })) {
            throw map.error(entry.key_node,
                            "'{}' is no known factor, and no command or argument uses it as "
                            "{{{}}}{}",
                            entry.key, entry.key, suggestion(entry.key, factor_names));
        }
        if (!entry.value.IsSequence() || entry.value.size() == 0) {
            throw map.error(entry.value, "'{}' must be a list of levels, such as [1, 2]", entry.key);
        }
        Factor factor{entry.key, {}};
        for (const YAML::Node& node : entry.value) {
            Level level = read_level(map, entry.key, node);
            if (std::ranges::find(factor.levels, level) != factor.levels.end()) {
                throw map.error(node, "level {} stands twice in '{}'", level.text, entry.key);
            }
            factor.levels.push_back(std::move(level));
        }
        factors.push_back(std::move(factor));
    }
    if (map.has("local_batch") && map.has("global_batch")) {
        throw map.error(map.node("global_batch"),
                        "'local_batch' and 'global_batch' exclude each other: one "
                        "follows from the other and 'gpus'");
    }
    return factors;
}

Configuration read_baseline(const YamlMap& owner, const std::vector<Factor>& factors, bool complete) {
    Configuration baseline;
    if (owner.has("baseline")) {
        const YamlMap map(owner.node("baseline"), owner.file(), "'baseline'");
        for (const auto& entry : map.entries()) {
            const auto factor = std::ranges::find(factors, entry.key, &Factor::name);
            if (factor == factors.end()) {
                std::vector<std::string_view> names;
                std::ranges::transform(factors, std::back_inserter(names), &Factor::name);
                throw map.error(entry.key_node, "'{}' is no factor of this study{}", entry.key,
                                suggestion(entry.key, names));
            }
            const Level level = read_level(map, entry.key, entry.value);
            if (std::ranges::find(factor->levels, level) == factor->levels.end()) {
                throw map.error(entry.value, "the baseline's {} is not among the levels of '{}'", level.text,
                                entry.key);
            }
            baseline.set(entry.key, level);
        }
    }
    for (const Factor& factor : factors) {
        if (baseline.find(factor.name) == nullptr && factor.levels.size() == 1) {
            baseline.set(factor.name, factor.levels.front());
        } else if (baseline.find(factor.name) == nullptr && complete) {
            throw owner.error(owner.node("baseline"),
                              "design one-factor needs a 'baseline' with a level of '{}'", factor.name);
        }
    }
    return baseline;
}

/// Everything a word of the workload may name in braces, given the factors of its series.
void check_placeholders(const YamlMap& owner, const Series& series) {
    for (const Workload& workload : series.workloads) {
        std::vector<std::string_view> known(run_placeholders.begin(), run_placeholders.end());
        std::ranges::transform(series.factors, std::back_inserter(known), &Factor::name);
        const bool has_batch = workload.local_batch || workload.global_batch ||
                               std::ranges::any_of(series.factors, [](const Factor& factor) {
                                   return factor.name == "local_batch" || factor.name == "global_batch";
                               });
        if (has_batch) {
            known.insert(known.end(), {"local_batch", "global_batch"});
        }
        if (workload.samples || workload.samples_per_gpu) {
            known.emplace_back("samples");
        }
        if (!workload.dataset.empty()) {
            known.emplace_back("dataset");
        }
        const auto check = [&](const std::string& word) {
            for (const std::string& name : placeholders(word)) {
                if (std::ranges::find(known, name) == known.end()) {
                    const char* key = owner.has("workload") ? "workload" : "workloads";
                    throw owner.error(owner.node(key), "{{{}}} in '{}' of workload {} has no value{}", name,
                                      word, workload.name, suggestion(name, known));
                }
            }
        };
        std::ranges::for_each(workload.command, check);
        std::ranges::for_each(workload.arguments, check);
    }
}

/// A series takes from the study what it does not say itself.
Series read_series(const YamlMap& study, const YamlMap& own) {
    const auto owner = [&](std::string_view key) -> const YamlMap& { return own.has(key) ? own : study; };
    Series series;
    const YamlMap& workload_owner = own.has("workload") || own.has("workloads") ? own : study;
    series.workloads = read_workloads(workload_owner);
    series.factors = read_factors(owner("factors"), series.workloads);
    constexpr std::array<std::string_view, 2> designs{"one-factor", "full-factorial"};
    series.design = owner("design").one_of("design", designs).value_or("full-factorial") == designs[0]
                        ? Design::one_factor
                        : Design::full_factorial;
    // A series with factors of its own does not inherit a baseline meant for others.
    const YamlMap& baseline_owner = own.has("factors") ? own : owner("baseline");
    series.baseline = read_baseline(baseline_owner, series.factors, series.design == Design::one_factor);
    series.repeats = static_cast<int>(owner("repeats").integer("repeats", 1).value_or(1));
    series.expect = read_expectation(owner("expect"));
    check_placeholders(workload_owner, series);
    return series;
}

void check_launcher(const YamlMap& map, const Study& study) {
    for (const Series& series : study.series) {
        const auto gpus = std::ranges::find(series.factors, "gpus", &Factor::name);
        const bool is_parallel =
            gpus != series.factors.end() &&
            std::ranges::any_of(gpus->levels, [](const Level& l) { return l.number > 1; });
        for (const Workload& workload : series.workloads) {
            if (workload.simulated() && !study.simulation) {
                throw map.error(map.node("workload"), "model 'simulated' needs a 'simulation' block");
            }
            if (workload.simulated() && study.launcher != launch::Launcher::local) {
                throw map.error(map.node("launcher"),
                                "simulated work is one process: 'launcher' must be local");
            }
            if (!workload.model.empty() && !workload.simulated() && is_parallel &&
                study.launcher == launch::Launcher::local) {
                throw map.error(map.node("launcher"),
                                "launcher local starts one process, but model {} runs one per "
                                "GPU: use 'launcher: mpirun' or slurm, or gpus: [1]",
                                workload.model);
            }
        }
    }
}

Simulation read_simulation(const YamlMap& study) {
    const YamlMap map(study.node("simulation"), study.file(), "'simulation'", simulation_keys);
    Simulation simulation;
    const auto accelerator = map.text("accelerator");
    if (!accelerator) {
        throw map.error(study.node("simulation"), "'simulation' needs an 'accelerator', such as V100");
    }
    simulation.accelerator = *accelerator;
    simulation.gpus_per_node = static_cast<int>(map.integer("gpus_per_node", 1).value_or(1));
    simulation.seed = map.integer("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
    simulation.counter_latency_ms = map.number("counter_latency_ms", 0).value_or(0);
    if (map.has("truth")) {
        simulation.truth = to_json(map.node("truth"), map.file());
        if (!simulation.truth.is_object()) {
            throw map.error(map.node("truth"), "'truth' must be a mapping");
        }
    }
    return simulation;
}

Study read(const YAML::Node& root, const std::filesystem::path& file, bool to_rehearse) {
    const YamlMap map(root, file.string(), "the study", study_keys);
    Study study;
    study.file = file;
    const auto name = map.text("study");
    if (!name) {
        throw map.error(root, "the study needs a name: 'study: NAME'");
    }
    study.name = *name;
    constexpr std::array<std::string_view, 2> seeds{"vary", "fixed"};
    constexpr std::array<std::string_view, 2> orders{"random", "as-listed"};
    study.vary_train_seed = map.one_of("train_seed", seeds).value_or("vary") == seeds[0];
    study.random_order = map.one_of("order", orders).value_or("random") == orders[0];
    study.seed = map.integer("seed", 0, std::numeric_limits<std::int32_t>::max()).value_or(0);
    study.launcher =
        *launch::launcher_named(map.one_of("launcher", launch::launcher_names).value_or("local"));
    study.launcher_arguments = map.texts("launcher_args");
    if (const auto gpus = map.integer("gpus_per_node", 1)) {
        study.gpus_per_node = static_cast<int>(*gpus);
    }
    study.rate_hz = map.number("rate_hz", positive);
    study.idle_s = map.number("idle_s", 0);
    study.cooldown_c = map.number("cooldown_c", 1);
    study.timeout_s = map.number("timeout_s", positive);
    if (map.has("env")) {
        const YamlMap environment(map.node("env"), map.file(), "'env'");
        for (const auto& entry : environment.entries()) {
            if (!entry.value.IsScalar()) {
                throw map.error(entry.value, "'{}' in 'env' must be a single value", entry.key);
            }
            const bool is_name =
                !entry.key.empty() && std::isdigit(static_cast<unsigned char>(entry.key[0])) == 0 &&
                std::ranges::all_of(entry.key, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
            if (!is_name) {
                throw map.error(entry.key_node, "'{}' in 'env' cannot be the name of a variable", entry.key);
            }
            study.environment[entry.key] = entry.value.Scalar();
        }
    }
    if (map.has("simulation")) {
        study.simulation = read_simulation(map);
    }
    if (!map.has("series")) {
        study.series.push_back(read_series(map, map));
    } else {
        const YAML::Node& list = map.node("series");
        if (!list.IsSequence() || list.size() == 0) {
            throw map.error(list, "'series' must be a list of series, each with a 'name'");
        }
        for (const YAML::Node& node : list) {
            const YamlMap own(node, map.file(), "the series", series_keys);
            Series series = read_series(map, own);
            series.name = own.text("name").value_or("");
            if (series.name.empty()) {
                throw own.error(node, "each series needs a 'name'");
            }
            if (std::ranges::find(study.series, series.name, &Series::name) != study.series.end()) {
                throw own.error(own.node("name"), "two series have the name '{}'", series.name);
            }
            study.series.push_back(std::move(series));
        }
    }
    if (!to_rehearse) {
        check_launcher(map, study);
    }
    return study;
}

}  // namespace

Study parse_study(const std::string& text, const std::filesystem::path& file, bool to_rehearse) {
    YAML::Node root;
    try {
        nlohmann::json(text).dump();  // the only test of UTF-8 at hand
        const std::vector<YAML::Node> documents = YAML::LoadAll(text);
        if (documents.size() > 1) {
            throw bad_input("{}: a study file is one YAML document, and there are {}", file.string(),
                            documents.size());
        }
        root = documents.empty() ? YAML::Node() : documents.front();
    } catch (const nlohmann::json::exception&) {
        throw bad_input("{}: it is not UTF-8", file.string());
    } catch (const YAML::ParserException& error) {
        throw bad_input("{}:{}:{}: this is no valid YAML: {}", file.string(), error.mark.line + 1,
                        error.mark.column + 1, error.msg);
    }
    return read(root, file, to_rehearse);
}

Study read_study(const std::filesystem::path& file, bool to_rehearse) {
    const auto text = files::read(file);
    if (!text) {
        throw bad_input("cannot read the study file {}: {}", file.string(), std::strerror(errno));
    }
    return parse_study(*text, file, to_rehearse);
}

}  // namespace joulemark::study
