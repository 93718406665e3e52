// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace joulemark::train {

double scaled_lr(double lr, LrScaling scaling, std::int64_t global_batch, std::int64_t reference) {
    const double ratio = static_cast<double>(global_batch) / static_cast<double>(reference);
    switch (scaling) {
        case LrScaling::linear:
            return lr * ratio;
        case LrScaling::square_root:
            return lr * std::sqrt(ratio);
        case LrScaling::none:
            break;
    }
    return lr;
}

double default_warmup_epochs(double share, std::int64_t epochs) {
    return std::min(5.0, share * static_cast<double>(epochs));
}

double LrSchedule::lr(std::int64_t step) const {
    if (step < settings_.warmup_steps) {
        return state_.rate * static_cast<double>(step + 1) / static_cast<double>(settings_.warmup_steps);
    }
    if (settings_.curve != LrCurve::cosine && settings_.curve != LrCurve::linear) {
        return state_.rate;
    }
    const std::int64_t length = settings_.steps - settings_.warmup_steps;
    const double done =
        length <= 0
            ? 0
            : std::min(1.0, static_cast<double>(step - settings_.warmup_steps) / static_cast<double>(length));
    return state_.rate *
           (settings_.curve == LrCurve::linear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2);
}

void LrSchedule::watch(double value) {
    if (settings_.curve != LrCurve::plateau) {
        return;
    }
    if (value < state_.best * (1 - threshold)) {
        state_.best = value;
        state_.without_improvement = 0;
    } else if (++state_.without_improvement > patience) {
        state_.rate *= factor;
        state_.without_improvement = 0;
    }
}

}  // namespace joulemark::train
