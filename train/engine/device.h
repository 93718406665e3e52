// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <torch/torch.h>

#include "data/loader.h"
#include "engine/options.h"
#include "parallel/ranks.h"

namespace joulemark::train {

/// The device of this rank: the GPU of its local rank, or the CPU. Throws environment_error when CUDA is
/// asked for and there is no GPU, or a precision that the device lacks.
torch::Device choose_device(DeviceChoice choice, Precision precision, const Ranks& ranks);

/// Waits until the device has done all it was given. Nothing on the CPU.
void synchronise(torch::Device device);

/// Sets how fp32 convolutions and products are computed: exactly, or with TF32.
void set_float32_mode(Precision precision);

/// While it lives, operations choose bf16 or fp16 where that is safe (autocast). Nothing for fp32 and tf32.
class Autocast {
  public:
    Autocast(torch::Device device, Precision precision);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

  private:
    bool active_;
    c10::DeviceType type_;
};

/// Batches of a loader on the device. On a GPU the copy of the next batch runs on a stream of its own while
/// the current one is worked on.
class Feed {
  public:
    Feed(Loader& loader, torch::Device device);
    std::optional<Batch> next();

  private:
    std::optional<Batch> copy_next();

    Loader& loader_;
    torch::Device device_;
    std::optional<c10::Stream> copies_;
    std::optional<Batch> ahead_;
};

}  // namespace joulemark::train
