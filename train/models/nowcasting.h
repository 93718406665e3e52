// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"
#include "models/unet.h"

namespace joulemark::train {

/// The network's settings, --set NAME=VALUE: inputs, outputs, width, depth.
UNetConfig unet_config(HyperParameters& settings);

/// A U-Net that forecasts radar images: mean squared error of frames in SEVIR's scaling; quality `vil_mae`,
/// the mean absolute error in the images' own unit, 0-255.
std::unique_ptr<Workload> make_unet(const Options& options, HyperParameters& settings,
                                    c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train
