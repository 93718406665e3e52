// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "core/error.h"

namespace joulemark::train {

/// What a data set holds for one index: tensors whose meaning the data set and its model agree on.
using Sample = std::vector<torch::Tensor>;

/// What one update of one rank works on.
struct Batch {
    std::vector<torch::Tensor> inputs;  ///< as the model takes them
    torch::Tensor target;               ///< undefined where the inputs hold it
    std::int64_t samples = 0;           ///< 0, and no tensors, when an evaluation could read none of them
    std::int64_t tokens = 0;

    Batch to(torch::Device device) const;
};

/// A data set of samples 0..size-1. All members are called from several threads at once.
class Dataset {
  public:
    virtual ~Dataset() = default;
    virtual std::uint32_t size() const = 0;
    /// The sample, augmented for `epoch`; the same arguments give the same sample. A failure names the file.
    virtual Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const = 0;
    /// Tensors of one batch, in page-locked memory if `pin`. Called off the main thread: must not use
    /// libtorch's thread pool.
    virtual Batch collate(const std::vector<Sample>& samples, bool pin) const = 0;
    virtual std::string name() const = 0;
    /// Differs for other data: of their names and sizes, or of some of them, so that it is had at once. What
    /// is made from a seed is told by its kind.
    virtual std::string digest() const { return "synthetic"; }
    /// What was found wrong when the data were opened, a sentence each, and is left out.
    virtual std::vector<std::string> problems() const { return {}; }
};

}  // namespace joulemark::train
