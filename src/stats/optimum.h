// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/selection.h"

namespace joulemark::stats {

/// Where the product of two laws (time and power, say) is least between the first and the last level.
struct Optimum {
    double at = 0;
    double value = 0;           ///< the product there
    Interval ci95;              ///< of `at`, within the measured levels
    bool interior = false;      ///< false: the least value is at an end, the true one may lie beyond
    double interior_share = 0;  ///< of resampled studies whose optimum was interior; ci95 is theirs alone
                                ///< where the optimum itself is
    Form first = Form::power, second = Form::power;  ///< selected
    int parameters = 0;                              ///< of both together
    std::vector<double> fitted;                      ///< the product at each level, sorted by it
};

/// Selects a law for each of two responses over the same levels and finds the least product. The interval is
/// a parametric bootstrap that repeats the selection (Efron and Tibshirani 1993, chapter 6): new
/// configuration means about both laws, with a variance drawn from its own uncertainty (scaled inverse
/// chi-squared), laws selected and fitted again, 2.5 and 97.5 per cent of the resulting (interior) optima.
/// Reproducible: `seed` is all the randomness there is. Nothing when either response has no law.
std::optional<Optimum> least_product(std::span<const Form> first_candidates, std::span<const Level> first,
                                     std::span<const Form> second_candidates, std::span<const Level> second,
                                     int resamples = 400, std::uint64_t seed = 1);

}  // namespace joulemark::stats
