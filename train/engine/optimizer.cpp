// SPDX-License-Identifier: Apache-2.0
#include "engine/optimizer.h"

#include <utility>

namespace joulemark::train {
namespace {

using torch::Tensor;

class Sgd final : public Optimizer {
  public:
    Sgd(const OptimizerSettings& settings, std::vector<Tensor> parameters)
        : Optimizer(std::move(parameters), settings.clip_norm),
          momentum_(settings.momentum),
          weight_decay_(settings.weight_decay) {
        // The fused update wants no buffers where there is no momentum. Momentum that starts at 0 gives the
        // first update that torch.optim.SGD makes from none.
        if (momentum_ != 0) {
            momenta_ = zeros_like_parameters();
        }
    }
    State state() const override { return {{"momentum", momenta_}}; }

  private:
    void update(const std::vector<Tensor>& gradients, double lr,
                const std::optional<Tensor>& overflow) override {
        at::_fused_sgd_(parameters_, gradients, momenta_, weight_decay_, momentum_, lr, /*dampening=*/0,
                        /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false,
                        /*grad_scale=*/std::nullopt, overflow);
    }
    std::vector<Tensor> momenta_;
    double momentum_;
    double weight_decay_;
};

/// Adam (Kingma, Ba 2015), and AdamW (Loshchilov, Hutter 2019).
class Adam final : public Optimizer {
  public:
    Adam(const OptimizerSettings& settings, std::vector<Tensor> parameters)
        : Optimizer(std::move(parameters), settings.clip_norm),
          settings_(settings),
          means_(zeros_like_parameters()),
          squares_(zeros_like_parameters()),
          step_(torch::zeros({}, torch::TensorOptions(torch::kFloat32).device(parameters_.front().device()))),
          steps_(parameters_.size(), step_) {}
    State state() const override {
        return {{"exp_avg", means_}, {"exp_avg_sq", squares_}, {"step", {step_}}};
    }

  private:
    void update(const std::vector<Tensor>& gradients, double lr,
                const std::optional<Tensor>& overflow) override {
        step_.add_(1);
        const auto fused = [&](auto operation) {
            operation(parameters_, gradients, means_, squares_, {}, steps_, lr, settings_.beta1,
                      settings_.beta2, settings_.weight_decay, settings_.eps, /*amsgrad=*/false,
                      /*maximize=*/false,
                      /*grad_scale=*/std::nullopt, overflow);
        };
        using Operation = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                                   at::TensorList, at::TensorList, double, double, double, double, double,
                                   bool, bool, const std::optional<Tensor>&, const std::optional<Tensor>&);
        fused(settings_.kind == OptimizerKind::adamw ? Operation(at::_fused_adamw_)
                                                     : Operation(at::_fused_adam_));
        if (overflow) {
            step_.sub_(overflow->squeeze());
        }
    }
    OptimizerSettings settings_;
    std::vector<Tensor> means_;
    std::vector<Tensor> squares_;
    Tensor step_;                ///< float [], on the device: an update that is left out does not count
    std::vector<Tensor> steps_;  ///< the same tensor for every parameter, as the fused update wants it
};

/// Scales the gradients down to `limit` where their common norm exceeds it; decided on the device.
void clip(const std::vector<Tensor>& gradients, double limit) {
    const Tensor norm = torch::stack(at::_foreach_norm(gradients, 2)).norm();
    at::_foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp_max(1));
}

}  // namespace

// The constants of PyTorch's GradScaler.
LossScaler::LossScaler(torch::Device device)
    : scale_(torch::full({1}, 65536.0F, device)),
      growth_tracker_(torch::zeros({1}, torch::TensorOptions(torch::kInt32).device(device))),
      overflow_(torch::zeros({1}, device)),
      skipped_(torch::zeros({1}, device)) {}

void LossScaler::unscale(const std::vector<Tensor>& gradients) {
    overflow_.zero_();
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow_, scale_.reciprocal());
}

void LossScaler::adapt() {
    skipped_.add_(overflow_);
    at::_amp_update_scale_(scale_, growth_tracker_, overflow_, /*growth=*/2.0, /*backoff=*/0.5,
                           /*interval=*/2000);
}

std::vector<Tensor> Optimizer::gradients() const {
    std::vector<Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const Tensor& parameter : parameters_) {
        gradients.push_back(parameter.grad());
    }
    return gradients;
}

void Optimizer::step(double lr, LossScaler* scaler) {
    const torch::NoGradGuard no_grad;
    const std::vector<Tensor> all = gradients();
    std::optional<Tensor> overflow;
    if (scaler != nullptr) {
        scaler->unscale(all);
        overflow = scaler->overflow();
    }
    if (clip_norm_) {
        clip(all, *clip_norm_);
    }
    update(all, lr, overflow);
    if (scaler != nullptr) {
        scaler->adapt();
    }
}

void Optimizer::clear_gradients() {
    for (Tensor& parameter : parameters_) {
        parameter.mutable_grad().reset();
    }
}

std::vector<Tensor> Optimizer::zeros_like_parameters() const {
    std::vector<Tensor> zeros;
    zeros.reserve(parameters_.size());
    for (const Tensor& parameter : parameters_) {
        zeros.push_back(torch::zeros_like(parameter));
    }
    return zeros;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::vector<Tensor> parameters) {
    if (settings.kind == OptimizerKind::sgd) {
        return std::make_unique<Sgd>(settings, std::move(parameters));
    }
    return std::make_unique<Adam>(settings, std::move(parameters));
}

}  // namespace joulemark::train
