// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "stats/law.h"

namespace joulemark::stats {

/// Whether the relative scatter of a law's residuals changes with the level: Koenker's (1981) form of the
/// Breusch-Pagan test, squared residuals on log x, chi-squared with one degree of freedom. None with fewer
/// than five levels, where it has no power to speak of.
std::optional<double> heteroscedasticity_p(const LawFit& fit);

/// Cook's distance of each level: how far all fitted values move, in units of their uncertainty, when it is
/// left out. Above 1 the level decides the law (Cook and Weisberg 1982). Empty without degrees of freedom.
std::vector<double> cooks_distance(const LawFit& fit);

/// The levels whose Cook's distance is above 1.
std::vector<double> influential_levels(const LawFit& fit);

}  // namespace joulemark::stats
