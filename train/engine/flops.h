// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <torch/torch.h>

namespace joulemark::train {

/// Floating-point operations of all convolutions and matrix products that `forward` does: two per
/// multiply-add. Counted from what is dispatched, so that nothing has to be derived by hand twice. Meanwhile
/// the parameters and buffers of `module` have shapes only (device "meta"), so `forward` must make its inputs
/// on that device; it costs neither time nor memory. `module` is in evaluation mode meanwhile.
double forward_flops(torch::nn::Module& module, const std::function<void()>& forward);

/// Backward computes two products for each of forward's: the gradients of the input and of the weights.
constexpr double training_per_forward = 3;

}  // namespace joulemark::train
