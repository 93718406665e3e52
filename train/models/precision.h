// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace joulemark::train {

/// bf16 and fp16 as fp32, other types as they are: for what needs the precision under autocast.
inline torch::Tensor at_least_float32(const torch::Tensor& x) {
    const bool reduced = x.scalar_type() == torch::kBFloat16 || x.scalar_type() == torch::kHalf;
    return reduced ? x.to(torch::kFloat32) : x;
}

}  // namespace joulemark::train
