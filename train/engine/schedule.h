// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace joulemark::train {

/// How the learning rate follows the global batch: lr x (batch / reference) (Goyal et al. 2017), lr x
/// sqrt(batch / reference), or lr.
enum class LrScaling { linear, square_root, none };

/// `reference` is the global batch at which `lr` was chosen.
double scaled_lr(double lr, LrScaling scaling, std::int64_t global_batch, std::int64_t reference);

/// The studies warm up for 5 of 100 epochs; a run of other length warms up for a share of itself, at most 5
/// epochs.
double default_warmup_epochs(double share, std::int64_t epochs);

/// What follows the warm-up: the peak; the peak halved whenever the watched value has not improved more than
/// `patience` times in a row (as PyTorch's ReduceLROnPlateau: factor 0.5, patience 5, relative threshold
/// 1e-4); half a cosine, or a line, from the peak down to 0, which the update after the run's last one would
/// have.
enum class LrCurve { constant, plateau, cosine, linear };

/// Linear warm-up to the peak, then the curve.
class LrSchedule {
  public:
    struct Settings {
        LrCurve curve = LrCurve::constant;
        double peak = 0;
        std::int64_t warmup_steps = 0;
        std::int64_t steps = 0;  ///< updates of the run; cosine and linear only
    };
    explicit LrSchedule(const Settings& settings) : settings_(settings), state_{.rate = settings.peak} {}

    /// The rate of update `step`, counted from 0 over the whole run.
    double lr(std::int64_t step) const;
    /// What the plateau goes by, each time that it is known: the validation loss, or an epoch's training loss
    /// where nothing is evaluated.
    void watch(double value);

    /// What a checkpoint has to keep.
    struct State {
        double rate = 0;
        double best = std::numeric_limits<double>::infinity();
        std::int64_t without_improvement = 0;
    };
    const State& state() const { return state_; }
    void restore(const State& state) { state_ = state; }

  private:
    static constexpr double factor = 0.5;
    static constexpr int patience = 5;
    static constexpr double threshold = 1e-4;
    Settings settings_;
    State state_;
};

}  // namespace joulemark::train
