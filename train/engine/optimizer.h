// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "engine/optimizer_settings.h"

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
    /// What a checkpoint has to keep.
    std::vector<std::pair<std::string, torch::Tensor>> state() const {
        return {{"scale", scale_}, {"growth_tracker", growth_tracker_}, {"skipped", skipped_}};
    }

  private:
    torch::Tensor scale_, growth_tracker_, overflow_, skipped_;
};

/// All parameters updated in one fused operation; every optimiser computes what torch.optim's of that name
/// does. Nothing waits for the device.
class Optimizer {
  public:
    virtual ~Optimizer() = default;

    /// One update from the parameters' gradients, first limited to the norm `clip_norm` together (torch's
    /// clip_grad_norm_). Left out on the device where `scaler` saw an overflow.
    void step(double lr, LossScaler* scaler);
    /// Drops the gradients; the next backward writes new ones instead of adding to them.
    void clear_gradients();
    std::vector<torch::Tensor> gradients() const;

    /// What a checkpoint has to keep: lists of tensors, one per parameter, or a single one for all.
    using State = std::vector<std::pair<std::string, std::vector<torch::Tensor>>>;
    virtual State state() const = 0;

  protected:
    Optimizer(std::vector<torch::Tensor> parameters, std::optional<double> clip_norm)
        : parameters_(std::move(parameters)), clip_norm_(clip_norm) {}
    virtual void update(const std::vector<torch::Tensor>& gradients, double lr,
                        const std::optional<torch::Tensor>& overflow) = 0;
    std::vector<torch::Tensor> zeros_like_parameters() const;

    std::vector<torch::Tensor> parameters_;

  private:
    std::optional<double> clip_norm_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings,
                                          std::vector<torch::Tensor> parameters);

}  // namespace joulemark::train
