// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "engine/hyper_parameters.h"
#include "engine/options.h"
#include "engine/workload.h"
#include "models/inception.h"
#include "models/resnet.h"
#include "models/vgg.h"

namespace joulemark::train {

// The settings of each network, --set NAME=VALUE; classes and process group come from elsewhere.
ResNetConfig resnet_config(HyperParameters& settings);
VggConfig vgg_config(HyperParameters& settings);
InceptionConfig inception_config(HyperParameters& settings);

// Networks on images: cross-entropy, top-1 error; Inception-v3's auxiliary head adds 0.4 times its own loss.
std::unique_ptr<Workload> make_resnet50(const Options& options, HyperParameters& settings,
                                        c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
std::unique_ptr<Workload> make_vgg16(const Options& options, HyperParameters& settings,
                                     c10::intrusive_ptr<c10d::ProcessGroup> sync_group);
std::unique_ptr<Workload> make_inception_v3(const Options& options, HyperParameters& settings,
                                            c10::intrusive_ptr<c10d::ProcessGroup> sync_group);

}  // namespace joulemark::train
