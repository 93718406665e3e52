// SPDX-License-Identifier: Apache-2.0
#include "engine/optimizer.h"

#include <utility>

namespace joulemark::train {

// The constants of PyTorch's GradScaler.
LossScaler::LossScaler(torch::Device device)
    : scale_(torch::full({1}, 65536.0F, device)),
      growth_tracker_(torch::zeros({1}, torch::TensorOptions(torch::kInt32).device(device))),
      overflow_(torch::zeros({1}, device)),
      skipped_(torch::zeros({1}, device)) {}

void LossScaler::unscale(const std::vector<torch::Tensor>& gradients) {
    overflow_.zero_();
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow_, scale_.reciprocal());
}

void LossScaler::adapt() {
    skipped_.add_(overflow_);
    at::_amp_update_scale_(scale_, growth_tracker_, overflow_, /*growth=*/2.0, /*backoff=*/0.5,
                           /*interval=*/2000);
}

Sgd::Sgd(std::vector<torch::Tensor> parameters, double momentum, double weight_decay)
    : parameters_(std::move(parameters)), momentum_(momentum), weight_decay_(weight_decay) {
    // The fused update wants no buffers where there is no momentum.
    for (std::size_t i = 0; momentum_ != 0 && i < parameters_.size(); ++i) {
        momenta_.push_back(torch::zeros_like(parameters_[i]));
    }
}

std::vector<torch::Tensor> Sgd::gradients() const {
    std::vector<torch::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const torch::Tensor& parameter : parameters_) {
        gradients.push_back(parameter.grad());
    }
    return gradients;
}

void Sgd::step(double lr, LossScaler* scaler) {
    const torch::NoGradGuard no_grad;
    const std::vector<torch::Tensor> all = gradients();
    std::optional<torch::Tensor> overflow;
    if (scaler != nullptr) {
        scaler->unscale(all);
        overflow = scaler->overflow();
    }
    at::_fused_sgd_(parameters_, all, momenta_, weight_decay_, momentum_, lr, /*dampening=*/0,
                    /*nesterov=*/false,
                    /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/std::nullopt, overflow);
    if (scaler != nullptr) {
        scaler->adapt();
    }
}

void Sgd::clear_gradients() {
    for (torch::Tensor& parameter : parameters_) {
        parameter.mutable_grad().reset();
    }
}

}  // namespace joulemark::train
