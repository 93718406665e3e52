// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "data/dataset.h"

namespace joulemark::train {

/// What a model made of a batch. All scalars stay on the device, so that reading them is the caller's
/// decision.
struct Outcome {
    torch::Tensor loss;         ///< mean over what is counted, differentiable
    torch::Tensor quality_sum;  ///< sum over what is counted; divided by its number it is the quality
    torch::Tensor quality_count =
        {};  ///< what is counted (BERT: masked tokens); undefined: the batch's samples
    /// What the loss is a mean over, as a share of the most there can be, [] on the device, where passes
    /// differ in it: an update's loss is the mean over all that its passes counted. Undefined: all the same.
    torch::Tensor weight = {};
    torch::Tensor further_sums = {};  ///< [n], sums of the further metrics; undefined where there are none
};

/// A model with its data and its objective: all that the training loop has to know about it.
class Workload {
  public:
    virtual ~Workload() = default;

    virtual torch::nn::Module& module() = 0;
    virtual const Dataset& training_data() const = 0;
    /// Null where nothing is evaluated.
    virtual const Dataset* validation_data() const = 0;
    /// Forward and loss; `batch` is on the model's device. Must not wait for the device.
    virtual Outcome forward(const Batch& batch) = 0;

    /// "top1_error".
    virtual std::string quality_name() const = 0;
    virtual bool higher_is_better() const { return false; }
    /// Of Outcome::further_sums: metrics that are reported beside the quality.
    virtual std::vector<std::string> further_names() const { return {}; }
    /// Floating-point operations of training on one sample as configured, forward and backward; a
    /// multiply-add counts as two. docs/workloads.md derives each model's.
    virtual std::optional<double> flops_per_sample() const { return std::nullopt; }
    /// The state-dict name of a tensor of published weights, whose names may differ; empty for one that
    /// this model has no use for (another head).
    virtual std::string weight_name(const std::string& published) const { return published; }
};

}  // namespace joulemark::train
