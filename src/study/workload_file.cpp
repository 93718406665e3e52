// SPDX-License-Identifier: Apache-2.0
#include "study/workload_file.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

namespace joulemark::study {
namespace {

constexpr double any = std::numeric_limits<double>::lowest();

constexpr std::array<std::string_view, 14> workload_keys{
    "name",         "model",  "command",       "args",    "set",             "dataset",
    "make_dataset", "epochs", "warmup_epochs", "samples", "samples_per_gpu", "local_batch",
    "global_batch", "expect"};
constexpr std::array<std::string_view, 9> expect_keys{"epoch_time_s",     "gpus",           "gpu_exponent",
                                                      "relative_time",    "gpu_hours",      "accelerator",
                                                      "kwh_per_gpu_hour", "relative_power", "source"};
constexpr std::array<std::string_view, 12> model_names{"resnet50",   "vgg16",  "inception_v3", "bert",
                                                       "distilbert", "schnet", "dimenet",      "pna",
                                                       "nnconv",     "unet",   "fourcastnet",  "simulated"};

Relative read_relative(const YamlMap& expect, std::string_view key) {
    Relative relative;
    if (!expect.has(key)) {
        return relative;
    }
    const std::string what = fmt::format("'{}'", key);
    for (const auto& factor : YamlMap(expect.node(key), expect.file(), what).entries()) {
        const YamlMap levels(factor.value, expect.file(), fmt::format("{} of '{}'", what, factor.key));
        for (const auto& level : levels.entries()) {
            relative[factor.key].emplace_back(Level(level.key), *levels.number(level.key, positive));
        }
    }
    return relative;
}

std::optional<Range> read_range(const YamlMap& map, std::string_view key) {
    if (!map.has(key)) {
        return std::nullopt;
    }
    const YAML::Node& node = map.node(key);
    if (!node.IsSequence()) {
        const double value = *map.number(key, positive);
        return Range{value, value};
    }
    if (node.size() == 2) {
        const auto low = scalar_number(node[0]);
        const auto high = scalar_number(node[1]);
        if (low && high && *low > 0 && *high >= *low) {
            return Range{*low, *high};
        }
    }
    throw map.error(node, "'{}' must be a number or a range [low, high]", key);
}

/// `set: {image_size: 64, channels_last: true}` as `--image-size 64 --channels-last`.
std::vector<std::string> read_options(const YamlMap& owner) {
    std::vector<std::string> words;
    if (!owner.has("set")) {
        return words;
    }
    for (const auto& entry : YamlMap(owner.node("set"), owner.file(), "'set'").entries()) {
        if (!entry.value.IsScalar()) {
            throw owner.error(entry.value, "'{}' must be a single value", entry.key);
        }
        if (entry.value.Scalar() == "false") {
            continue;
        }
        std::string option = "--" + entry.key;
        std::ranges::replace(option, '_', '-');
        words.push_back(option);
        if (entry.value.Scalar() != "true") {
            words.push_back(entry.value.Scalar());
        }
    }
    return words;
}

/// A text with ${NAME} or ${NAME:-default} replaced from the environment: data lie elsewhere on each machine.
std::string expand_environment(const YamlMap& map, std::string_view key) {
    std::string text = map.text(key).value_or("");
    for (std::size_t open = text.find("${"); open != std::string::npos; open = text.find("${", open)) {
        const std::size_t close = text.find('}', open);
        if (close == std::string::npos) {
            throw map.error(map.node(key), "'{}' has a '${{' without '}}'", key);
        }
        const std::string inside = text.substr(open + 2, close - open - 2);
        const std::size_t otherwise = inside.find(":-");
        const std::string name = inside.substr(0, otherwise);
        const char* value = std::getenv(name.c_str());
        const bool is_set = value != nullptr && *value != '\0';
        if (!is_set && otherwise == std::string::npos) {
            throw map.error(map.node(key),
                            "the environment variable {} is not set: set it, or give a default as "
                            "${{{}:-PATH}}",
                            name, name);
        }
        const std::string replacement = is_set ? value : inside.substr(otherwise + 2);
        text.replace(open, close + 1 - open, replacement);
        open += replacement.size();
    }
    return text;
}

Workload read_workload(const YAML::Node& node, const std::string& file) {
    const YamlMap map(node, file, "the workload", workload_keys);
    Workload workload;
    workload.model = map.text("model").value_or("");
    workload.command = map.texts("command");
    if (workload.model.empty() == workload.command.empty()) {
        throw map.error(node, "a workload has either a 'model' or a 'command'");
    }
    if (!workload.model.empty() && std::ranges::find(model_names, workload.model) == model_names.end()) {
        throw map.error(map.node("model"), "there is no model '{}'{}", workload.model,
                        suggestion(workload.model, model_names));
    }
    workload.name = map.text("name").value_or(
        workload.model.empty() ? std::filesystem::path(workload.command.front()).filename().string()
                               : workload.model);
    workload.arguments = read_options(map);
    std::ranges::copy(map.texts("args"), std::back_inserter(workload.arguments));
    workload.dataset = expand_environment(map, "dataset");
    workload.make_dataset = expand_environment(map, "make_dataset");
    workload.epochs = static_cast<int>(map.integer("epochs", 1).value_or(1));
    workload.warmup_epochs = static_cast<int>(map.integer("warmup_epochs", 0).value_or(0));
    if (workload.warmup_epochs >= workload.epochs) {
        throw map.error(map.node("warmup_epochs"),
                        "'warmup_epochs' ({}) must be less than 'epochs' ({}), which "
                        "counts all epochs of a run",
                        workload.warmup_epochs, workload.epochs);
    }
    workload.samples = map.integer("samples", 1, std::numeric_limits<std::int64_t>::max());
    workload.samples_per_gpu = map.number("samples_per_gpu", 1);
    if (workload.samples && workload.samples_per_gpu) {
        throw map.error(map.node("samples_per_gpu"), "'samples' and 'samples_per_gpu' exclude each other");
    }
    workload.local_batch = map.integer("local_batch", 1);
    workload.global_batch = map.integer("global_batch", 1);
    if (workload.local_batch && workload.global_batch) {
        throw map.error(map.node("global_batch"),
                        "'local_batch' and 'global_batch' exclude each other: one "
                        "follows from the other and 'gpus'");
    }
    workload.expect = read_expectation(map);
    return workload;
}

}  // namespace

std::optional<Expectation> read_expectation(const YamlMap& owner) {
    if (!owner.has("expect")) {
        return std::nullopt;
    }
    const YamlMap map(owner.node("expect"), owner.file(), "'expect'", expect_keys);
    Expectation expect;
    expect.epoch_time_s = map.number("epoch_time_s", positive);
    expect.gpus = map.number("gpus", 1).value_or(1);
    expect.gpu_exponent = map.number("gpu_exponent", any).value_or(-1);
    expect.relative_time = read_relative(map, "relative_time");
    expect.relative_power = read_relative(map, "relative_power");
    expect.kwh_per_gpu_hour = read_range(map, "kwh_per_gpu_hour");
    expect.accelerator = map.text("accelerator").value_or("");
    if (map.has("gpu_hours")) {
        const YamlMap hours(map.node("gpu_hours"), map.file(), "'gpu_hours'");
        for (const auto& entry : hours.entries()) {
            expect.gpu_hours.emplace_back(Level(entry.key), *hours.number(entry.key, positive));
        }
    }
    expect.source = map.text("source").value_or("");
    const bool has_numbers = expect.epoch_time_s || expect.kwh_per_gpu_hour || !expect.gpu_hours.empty();
    if (has_numbers && expect.source.empty()) {
        throw map.error(map.node("source"),
                        "'expect' needs a 'source': say where its numbers are from, or that "
                        "they are assumed");
    }
    return expect;
}

std::vector<Workload> read_workloads(const YamlMap& owner) {
    if (owner.has("workload") == owner.has("workloads")) {
        throw owner.error(owner.node("workload"), "{} needs a 'workload' or a list of 'workloads'",
                          owner.what());
    }
    if (owner.has("workload")) {
        return {read_workload(owner.node("workload"), owner.file())};
    }
    const YAML::Node& list = owner.node("workloads");
    if (!list.IsSequence() || list.size() == 0) {
        throw owner.error(list, "'workloads' must be a list of workloads");
    }
    std::vector<Workload> workloads;
    for (const YAML::Node& node : list) {
        Workload workload = read_workload(node, owner.file());
        if (std::ranges::find(workloads, workload.name, &Workload::name) != workloads.end()) {
            throw owner.error(node, "two workloads have the name '{}': give one a 'name'", workload.name);
        }
        workloads.push_back(std::move(workload));
    }
    return workloads;
}

}  // namespace joulemark::study
