// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule.h"

#include <algorithm>
#include <cmath>

namespace joulemark::train {

double scaled_lr(double lr, LrScaling scaling, std::int64_t global_batch) {
    const double ratio = static_cast<double>(global_batch) / 256;
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

double default_warmup_epochs(std::int64_t epochs) {
    return std::min(5.0, 0.05 * static_cast<double>(epochs));
}

void LrSchedule::epoch_ended(double watched) {
    if (watched < best_ * (1 - threshold)) {
        best_ = watched;
        without_improvement_ = 0;
    } else if (++without_improvement_ > patience) {
        rate_ *= factor;
        without_improvement_ = 0;
    }
}

}  // namespace joulemark::train
