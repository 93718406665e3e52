// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/model.h"

namespace joulemark::analysis {

/// Power per GPU against what it is spent on: samples and updates per GPU hour, with the number of GPUs and
/// the hardware as covariates. Samples are updates x local batch, so where the local batch does not vary the
/// two are refused as one.
std::vector<Regression> power_regressions(const std::vector<Configuration>& configurations);

/// Effects of GPUs, cap, clock and batch on the logarithm of epoch time and energy, each with the others held
/// fixed, and their interactions where the design can tell them (a full factorial; a one-factor design
/// cannot, which is said). One entry per response and workload: the joint law over several factors.
std::vector<Regression> factor_effects(const std::vector<Configuration>& configurations);

}  // namespace joulemark::analysis
