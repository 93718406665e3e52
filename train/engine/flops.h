// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <torch/torch.h>

namespace joulemark::train {

/// Floating-point operations of all convolutions and matrix products that `forward` does: two per
/// multiply-add. Counted from what is dispatched, so that nothing has to be derived by hand twice. `module`
/// is in evaluation mode meanwhile and no gradients are recorded, so that nothing of it changes.
double forward_flops(torch::nn::Module& module, const std::function<void()>& forward);

/// Backward computes two products for each of forward's: the gradients of the input and of the weights.
constexpr double training_per_forward = 3;

}  // namespace joulemark::train
