// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <torch/torch.h>

namespace joulemark::train {

/// Keeps fp16's gradients in range: the loss is multiplied by a scale that grows until gradients overflow.
/// Scale and overflow stay on the device, so no update waits for the host.
class LossScaler {
  public:
    explicit LossScaler(torch::Device device);

    torch::Tensor scaled(const torch::Tensor& loss) const { return loss * scale_; }
    /// Divides the gradients by the scale and notes whether any is infinite or NaN.
    void unscale(const std::vector<torch::Tensor>& gradients);
    /// 1 when the last unscale found one, else 0; float [1] on the device.
    const torch::Tensor& overflow() const { return overflow_; }
    /// After the update.
    void adapt();
    /// Updates left out so far, float [1] on the device.
    const torch::Tensor& skipped() const { return skipped_; }

  private:
    torch::Tensor scale_, growth_tracker_, overflow_, skipped_;
};

/// SGD with momentum and weight decay, all parameters in one fused operation. The momentum starts at 0.
class Sgd {
  public:
    Sgd(std::vector<torch::Tensor> parameters, double momentum, double weight_decay);

    /// One update from the parameters' gradients, left out on the device where `scaler` saw an overflow.
    void step(double lr, LossScaler* scaler);
    /// Drops the gradients; the next backward writes new ones instead of adding to them.
    void clear_gradients();
    std::vector<torch::Tensor> gradients() const;

  private:
    std::vector<torch::Tensor> parameters_;
    std::vector<torch::Tensor> momenta_;
    double momentum_;
    double weight_decay_;
};

}  // namespace joulemark::train
