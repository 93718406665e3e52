// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <torch/torch.h>

#include "data/dataset.h"

namespace joulemark::train {

/// What a model made of a batch: both scalars stay on the device, so that reading them is the caller's
/// decision.
struct Outcome {
    torch::Tensor loss;         ///< mean over the batch's samples, differentiable
    torch::Tensor quality_sum;  ///< sum over the samples; divided by their number it is the quality
};

/// A model with its data and its objective: all that the training loop has to know about it. The quality is
/// of the kind where lower is better.
class Workload {
  public:
    virtual ~Workload() = default;

    virtual torch::nn::Module& module() = 0;
    virtual const Dataset& training_data() const = 0;
    /// Null where nothing is evaluated.
    virtual const Dataset* validation_data() const = 0;
    /// Forward and loss; `batch` is on the model's device.
    virtual Outcome forward(const Batch& batch) = 0;
    /// "top1_error".
    virtual std::string quality_name() const = 0;
};

}  // namespace joulemark::train
