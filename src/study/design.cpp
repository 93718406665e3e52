// SPDX-License-Identifier: Apache-2.0
#include "study/design.h"

#include <algorithm>
#include <cmath>

#include "core/csv.h"
#include "core/error.h"
#include "study/placeholder.h"

namespace joulemark::study {
namespace {

constexpr std::size_t most_runs = 100'000;

/// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t hash(std::string_view text, std::uint64_t state = 14695981039346656037U) {
    for (const char c : text) {
        state = (state ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    return state;
}

/// SplitMix64 (Steele, Lea and Flood 2014): std::shuffle's result differs between standard libraries.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    template <typename T>
    void shuffle(std::vector<T>& items) {
        for (std::size_t i = items.size(); i > 1; --i) {
            std::swap(items[i - 1], items[next() % i]);
        }
    }

  private:
    std::uint64_t state_;
};

std::vector<Configuration> one_factor(const Series& series) {
    std::vector<Configuration> result{series.baseline};
    for (const Factor& factor : series.factors) {
        for (const Level& level : factor.levels) {
            Configuration configuration = series.baseline;
            configuration.set(factor.name, level);
            if (configuration != series.baseline) {
                result.push_back(std::move(configuration));
            }
        }
    }
    return result;
}

std::vector<Configuration> full_factorial(const Series& series) {
    std::vector<Configuration> result{{}};
    for (const Factor& factor : series.factors) {
        std::vector<Configuration> extended;
        if (result.size() * factor.levels.size() > most_runs) {
            throw bad_input("the study plans more than {} runs: use 'design: one-factor', or fewer levels",
                            most_runs);
        }
        for (const Configuration& configuration : result) {
            for (const Level& level : factor.levels) {
                extended.push_back(configuration);
                extended.back().set(factor.name, level);
            }
        }
        result = std::move(extended);
    }
    return result;
}

/// Part of a run's name, which is a folder's: other characters are replaced, and what got lost is hashed.
std::string name_part(const std::string& text) {
    std::string part = text;
    std::ranges::replace_if(
        part,
        [](char c) {
            const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                 c == '.' || c == '_';
            return !allowed;
        },
        '_');
    return part == text && part.size() <= 48
               ? part
               : fmt::format("{}.{:06x}", part.substr(0, 32), hash(text) & 0xffffff);
}

std::string_view short_name(std::string_view factor) {
    constexpr std::pair<std::string_view, std::string_view> names[] = {{"gpus", "g"},
                                                                       {"power_cap_w", "cap"},
                                                                       {"sm_clock_mhz", "clk"},
                                                                       {"local_batch", "lb"},
                                                                       {"global_batch", "gb"}};
    const auto found =
        std::ranges::find(names, factor, &std::pair<std::string_view, std::string_view>::first);
    return found == std::end(names) ? factor : found->second;
}

std::string identity(const Series& series, const Workload& workload, const Configuration& levels,
                     int repeat) {
    std::string id = series.name.empty() ? "" : name_part(series.name) + "-";
    id += name_part(workload.name);
    for (const auto& [factor, level] : levels.levels()) {
        id += fmt::format("-{}{}", short_name(factor), name_part(level.text));
    }
    constexpr std::size_t longest =
        160;  // A folder's name has 255 bytes at most, and logs and moved runs add to it.
    if (id.size() > longest) {
        id = fmt::format("{}.{:08x}", id.substr(0, longest), hash(id) & 0xffffffff);
    }
    return fmt::format("{}-r{}", id, repeat);
}

/// Adds the batch that follows from the other and the number of GPUs. The reason when none does.
std::string complete_batch(Configuration& factors, const Workload& workload, int gpus) {
    const auto constant = [&](const char* name, std::optional<std::int64_t> value) {
        if (value && !factors.find("local_batch") && !factors.find("global_batch")) {
            factors.set(name, Level(static_cast<double>(*value)));
        }
    };
    constant("local_batch", workload.local_batch);
    constant("global_batch", workload.global_batch);
    if (const auto local = factors.number("local_batch")) {
        factors.set("global_batch", Level(*local * gpus));
    } else if (const auto global = factors.number("global_batch")) {
        if (std::fmod(*global, gpus) != 0) {
            return fmt::format("global_batch {} is not divisible by {} GPUs", csv::text(*global), gpus);
        }
        factors.set("local_batch", Level(*global / gpus));
    }
    return "";
}

std::string outside_limits(const Configuration& factors, int gpus, const Limits& limits) {
    if (limits.gpus && gpus > *limits.gpus) {
        return fmt::format("it needs {} GPUs, and {} may be used here", gpus, *limits.gpus);
    }
    const auto cap = factors.number("power_cap_w");
    if (cap && limits.power_cap_w && (*cap < limits.power_cap_w->low || *cap > limits.power_cap_w->high)) {
        return fmt::format("power_cap_w {} is outside {} to {} W, the range of the GPU", csv::text(*cap),
                           csv::text(limits.power_cap_w->low), csv::text(limits.power_cap_w->high));
    }
    const auto clock = factors.number("sm_clock_mhz");
    if (clock && limits.sm_clock_max_mhz && *clock > *limits.sm_clock_max_mhz) {
        return fmt::format("sm_clock_mhz {} is above {} MHz, the highest of the GPU", csv::text(*clock),
                           csv::text(*limits.sm_clock_max_mhz));
    }
    return "";
}

std::optional<std::int64_t> samples_of(const Workload& workload, int gpus) {
    if (workload.samples_per_gpu) {
        return static_cast<std::int64_t>(std::floor(*workload.samples_per_gpu * gpus));
    }
    return workload.samples;
}

std::vector<std::string> model_command(const Study& study, const PlannedRun& run) {
    const Workload& workload = *run.workload;
    std::vector<std::string> words;
    const auto option = [&](const char* name, const std::string& value) {
        words.insert(words.end(), {name, value});
    };
    if (workload.simulated()) {
        words = {"joulemark-sim", "train"};
        option("--gpus", "{gpus}");
    } else {
        words = {"joulemark-train", workload.model};
        if (!workload.dataset.empty()) {
            option("--dataset", "{dataset}");
        }
    }
    option("--epochs", "{epochs}");
    if (workload.simulated() && workload.warmup_epochs > 0) {
        option("--warmup-epochs", "{warmup_epochs}");
    }
    if (run.factors.find("local_batch") != nullptr) {
        option("--local-batch", "{local_batch}");
    }
    if (samples_of(workload, run.gpus)) {
        option("--samples", "{samples}");
    }
    if (workload.simulated()) {
        option("--workload", "{workload}");
        nlohmann::json truth = workload.truth;
        truth.update(study.simulation->truth);
        option("--truth", truth.dump());
        option("--seed", std::to_string(simulation_seed(*study.simulation, run.id)));
    } else {
        option("--seed", "{seed}");
    }
    return words;
}

std::vector<std::string> command_of(const Study& study, const PlannedRun& run) {
    const Workload& workload = *run.workload;
    const auto value = [&](const std::string& name) -> std::string {
        if (const Level* level = run.factors.find(name)) {
            return level->text;
        }
        if (name == "gpus") return std::to_string(run.gpus);
        if (name == "epochs") return std::to_string(workload.epochs);
        if (name == "warmup_epochs") return std::to_string(workload.warmup_epochs);
        if (name == "seed") return std::to_string(run.seed);
        if (name == "repeat") return std::to_string(run.repeat);
        if (name == "run") return run.id;
        if (name == "dataset") return workload.dataset;
        if (name == "samples") return std::to_string(samples_of(workload, run.gpus).value_or(0));
        return "";  // Only {series} of an unnamed one: the study file was checked for all others.
    };
    std::vector<std::string> words = workload.command.empty() ? model_command(study, run) : workload.command;
    words.insert(words.end(), workload.arguments.begin(), workload.arguments.end());
    for (std::string& word : words) {
        word = fill(word, value);
    }
    return words;
}

PlannedRun make_run(const Study& study, const Series& series, const Workload& workload,
                    const Configuration& levels, int repeat, const Limits& limits) {
    PlannedRun run;
    run.series = &series;
    run.workload = &workload;
    run.id = identity(series, workload, levels, repeat);
    run.repeat = repeat;
    run.seed = study.seed + (study.vary_train_seed ? repeat - 1 : 0);
    run.factors.set("workload", Level(workload.name));
    if (!series.name.empty()) {
        run.factors.set("series", Level(series.name));
    }
    for (const auto& [factor, level] : levels.levels()) {
        run.factors.set(factor, level);
    }
    run.gpus = static_cast<int>(run.factors.number("gpus").value_or(1));
    run.skipped = complete_batch(run.factors, workload, run.gpus);
    if (run.skipped.empty() && !workload.on_cpu()) {
        run.skipped = outside_limits(run.factors, run.gpus, limits);
    }
    if (run.skipped.empty()) {
        run.command = command_of(study, run);
    }
    return run;
}

}  // namespace

std::int64_t simulation_seed(const Simulation& simulation, const std::string& run) {
    return static_cast<std::int64_t>(hash(run, hash(std::to_string(simulation.seed))) & 0x7fffffff);
}

std::vector<PlannedRun> plan(const Study& study, const Limits& limits) {
    std::vector<PlannedRun> runs;
    const int passes = std::ranges::max_element(study.series, {}, &Series::repeats)->repeats;
    std::vector<std::pair<const Series*, std::vector<Configuration>>> designs;
    std::size_t total = 0;
    for (const Series& series : study.series) {
        designs.emplace_back(
            &series, series.design == Design::one_factor ? one_factor(series) : full_factorial(series));
        total +=
            designs.back().second.size() * series.workloads.size() * static_cast<std::size_t>(series.repeats);
        if (total > most_runs) {
            throw bad_input("{}: the study plans more than {} runs: use fewer levels or repeats",
                            study.file.string(), most_runs);
        }
    }
    for (int repeat = 1; repeat <= passes; ++repeat) {
        std::vector<PlannedRun> pass;
        for (const auto& [series, configurations] : designs) {
            for (const Workload& workload : series->workloads) {
                for (const Configuration& levels : configurations) {
                    if (repeat <= series->repeats) {
                        pass.push_back(make_run(study, *series, workload, levels, repeat, limits));
                    }
                }
            }
        }
        if (study.random_order) {
            Random(hash(fmt::format("{} {}", study.seed, repeat))).shuffle(pass);
        }
        std::ranges::move(pass, std::back_inserter(runs));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].position = static_cast<int>(i) + 1;
    }
    return runs;
}

std::string describe(const PlannedRun& run) {
    std::string text = run.workload->name;
    for (const auto& [factor, level] : run.factors.levels()) {
        if (factor == "series") {
            text = level.text + ", " + text;
        } else if (factor != "workload" && factor != "global_batch") {
            text += fmt::format(", {} {}", factor, level.text);
        }
    }
    return text;
}

}  // namespace joulemark::study
