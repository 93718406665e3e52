// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"

namespace joulemark::train {

/// ResNet-50 on images, cross-entropy, top-1 error. Settings: width, blocks (four numbers),
/// zero_init_residual.
std::unique_ptr<Workload> make_resnet50(const Options& options, HyperParameters& settings,
                                        c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train
