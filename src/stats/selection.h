// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stats/law.h"

namespace joulemark::stats {

/// The candidate forms of one series, those that could be fitted, and the one chosen.
struct Selection {
    struct Refusal {
        Form form;
        std::string reason;
    };
    std::vector<LawFit> fits;             ///< in the order of `candidates`
    std::vector<Refusal> refusals;        ///< candidates that have no fit, and why
    std::optional<std::size_t> selected;  ///< index into fits
    std::string reason;                   ///< why this one, in words; why there is none
};

/// Fits every candidate and chooses: least AICc; among those within 2 of it, which AICc does not tell apart
/// (Burnham and Anderson 2002, 2.6), the least leave-one-out error. With too few levels for AICc the
/// leave-one-out error decides.
///
/// With Detail::point there is no leave-one-out error: AICc alone decides, else the least sum of squares.
Selection select_law(std::span<const Form> candidates, std::span<const Level> levels,
                     Detail detail = Detail::full);

}  // namespace joulemark::stats
