// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace joulemark::train {

/// How the learning rate follows the global batch: lr x (batch / 256) (Goyal et al. 2017), lr x sqrt(batch /
/// 256), or lr.
enum class LrScaling { linear, square_root, none };

double scaled_lr(double lr, LrScaling scaling, std::int64_t global_batch);

/// The studies warm up for 5 of 100 epochs; a shorter run warms up for the same share of itself.
double default_warmup_epochs(std::int64_t epochs);

/// Linear warm-up to `peak`, then halved whenever the watched value has not improved for more than `patience`
/// epochs (as PyTorch's ReduceLROnPlateau: factor 0.5, patience 5, relative threshold 1e-4).
class LrSchedule {
  public:
    LrSchedule(double peak, std::int64_t warmup_steps) : rate_(peak), warmup_steps_(warmup_steps) {}

    /// The rate of update `step`, counted from 0 over the whole run.
    double lr(std::int64_t step) const {
        return step < warmup_steps_
                   ? rate_ * static_cast<double>(step + 1) / static_cast<double>(warmup_steps_)
                   : rate_;
    }
    /// After an epoch: the validation loss, or the training loss where nothing is evaluated.
    void epoch_ended(double watched);

  private:
    static constexpr double factor = 0.5;
    static constexpr int patience = 5;
    static constexpr double threshold = 1e-4;
    double rate_;
    std::int64_t warmup_steps_;
    double best_ = std::numeric_limits<double>::infinity();
    int without_improvement_ = 0;
};

}  // namespace joulemark::train
