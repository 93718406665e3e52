// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"

namespace joulemark::train {

/// FourCastNet on global weather: relative L2 error of the fields one time step (steps=1) or each of the next
/// two (steps=2) ahead; latitude-weighted RMSE and anomaly correlation of one channel at the last of them.
/// Settings: patch, embed, depth, blocks, mlp_ratio, steps, channel; of synthetic data channels, height,
/// width.
std::unique_ptr<Workload> make_fourcastnet(const Options& options, HyperParameters& settings,
                                           c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train
