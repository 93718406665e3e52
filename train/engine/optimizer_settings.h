// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace joulemark::train {

enum class OptimizerKind { sgd, adam, adamw };

struct OptimizerSettings {
    OptimizerKind kind = OptimizerKind::sgd;
    double momentum = 0;  ///< SGD
    double beta1 = 0.9;   ///< Adam and AdamW, as the next two
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;  ///< added to the gradient; AdamW: taken from the weight itself
    std::optional<double> clip_norm = std::nullopt;
};

}  // namespace joulemark::train
