// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include <torch/torch.h>

#include "engine/options.h"
#include "engine/safetensors.h"
#include "engine/schedule.h"

namespace joulemark::train {

/// What a run has come to between two updates; with the tensors, all that its continuation depends on:
/// everything random is keyed by seed, epoch, update and index.
struct Position {
    std::int64_t step = 0;
    std::int64_t evaluations = 0;
    std::int64_t ranks = 1;  ///< over which the losses of an epoch in progress are added up
    LrSchedule::State schedule;
};

/// One file, checkpoint.safetensors, replaced atomically: after a kill the folder holds the last whole one. An
/// unfinished one beside it goes when the next is written: one run writes to a folder.
struct Checkpoint {
    std::string path;
    Position position;
    Identity identity;
    std::map<std::string, torch::Tensor> tensors;
};

void write_checkpoint(const std::filesystem::path& folder, const Position& position, const Identity& identity,
                      const NamedTensors& tensors);

/// Throws bad_input: none there, cut, or not written by joulemark-train.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

/// Throws bad_input that lists the options which differ from those of the run that wrote the checkpoint.
void check_identity(const Checkpoint& checkpoint, const Identity& mine);

}  // namespace joulemark::train
