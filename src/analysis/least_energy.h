// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// The cap and the clock of least energy per epoch, for every series with five levels or more, from the laws
/// of epoch time and of mean power (energy is their product, and neither law alone has a minimum).
std::vector<LeastEnergy> least_energy_of(const std::vector<Configuration>& configurations);

/// No form of a law has a minimum: where the least energy lies between the levels, none is selected for it.
void refuse_without_minimum(std::vector<Law>& laws, const std::vector<LeastEnergy>& least_energy);

}  // namespace joulemark::analysis
