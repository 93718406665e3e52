// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint.h"

#include <system_error>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/csv.h"
#include "core/error.h"
#include "engine/whole_number.h"

namespace joulemark::train {
namespace {

constexpr const char* file_name = "checkpoint.safetensors";
constexpr std::string_view format_name = "joulemark-train checkpoint ";
constexpr std::string_view format_number = "2";  // 1 did not say over how many ranks losses are added up

// Numbers are kept as their shortest exact text: JSON has no infinity.
double exact_number(const nlohmann::json& json) {
    return csv::number(json.get<std::string>()).value();
}

std::string exact_text(double value) {
    return fmt::format("{}", value);
}

void check_format(const std::filesystem::path& path, std::string_view format) {
    if (!format.starts_with(format_name)) {
        throw bad_input("{} is not a checkpoint of joulemark-train: weights alone are loaded with --weights",
                        path.string());
    }
    format.remove_prefix(format_name.size());
    if (format != format_number) {
        throw bad_input(
            "the checkpoint {} is of format {}, and this joulemark-train reads format {}: go on with the "
            "version that "
            "wrote it, or begin anew in another folder",
            path.string(), format, format_number);
    }
}

/// What a kill in the middle of writing has left, as large as a checkpoint: nobody else would remove it.
void remove_unfinished(const std::filesystem::path& folder) {
    std::error_code unimportant;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unimportant)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(file_name + std::string(".")) && name.ends_with(".tmp")) {
            std::filesystem::remove(entry.path(), unimportant);
        }
    }
}

}  // namespace

void write_checkpoint(const std::filesystem::path& folder, const Position& position, const Identity& identity,
                      const NamedTensors& tensors) {
    const nlohmann::json at = {{"step", position.step},
                               {"evaluations", position.evaluations},
                               {"ranks", position.ranks},
                               {"rate", exact_text(position.schedule.rate)},
                               {"best", exact_text(position.schedule.best)},
                               {"without_improvement", position.schedule.without_improvement}};
    remove_unfinished(folder);
    write_safetensors(folder / file_name, tensors,
                      {{"format", fmt::format("{}{}", format_name, format_number)},
                       {"position", at.dump()},
                       {"identity", nlohmann::json(identity).dump()}});
}

Checkpoint read_checkpoint(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / file_name;
    std::error_code error;
    const bool there = std::filesystem::exists(path, error);
    if (error) {
        throw bad_input("cannot read the checkpoint in {}: {}", folder.string(), error.message());
    }
    if (!there) {
        throw bad_input("there is no checkpoint in {}: --resume takes the folder that --checkpoint wrote",
                        folder.string());
    }
    SafeTensors file = read_safetensors(path);
    check_format(path, file.metadata["format"]);
    Checkpoint checkpoint{path.string(), {}, {}, std::move(file.tensors)};
    try {
        const auto at = nlohmann::json::parse(file.metadata["position"]);
        checkpoint.identity = nlohmann::json::parse(file.metadata["identity"]).get<Identity>();
        checkpoint.position = {
            .step = whole_number(at.at("step"), 0),
            .evaluations = whole_number(at.at("evaluations"), 0),
            .ranks = whole_number(at.at("ranks"), 1),
            .schedule = {.rate = exact_number(at.at("rate")),
                         .best = exact_number(at.at("best")),
                         .without_improvement = whole_number(at.at("without_improvement"), 0)}};
    } catch (const std::exception&) {
        throw bad_input("the header of the checkpoint {} is damaged", path.string());
    }
    return checkpoint;
}

/// More or fewer epochs alone make no other run: the number is named beside what follows from it.
void check_identity(const Checkpoint& checkpoint, const Identity& mine) {
    std::vector<std::string> differences;
    std::size_t decisive = 0;
    for (const auto& [name, value] : mine) {
        const auto found = checkpoint.identity.find(name);
        if (found == checkpoint.identity.end() || found->second != value) {
            decisive += name == "--epochs" ? 0 : 1;
            differences.push_back(fmt::format("{} {} instead of {}", name,
                                              found == checkpoint.identity.end() ? "(none)" : found->second,
                                              value));
        }
    }
    if (decisive > 0) {
        throw bad_input("the checkpoint {} is of another run, with {}: give the options of that run",
                        checkpoint.path, fmt::join(differences, ", "));
    }
}

}  // namespace joulemark::train
