// SPDX-License-Identifier: Apache-2.0
#include "models/resnet_workload.h"

#include <utility>

#include "models/image_classification.h"
#include "models/resnet.h"

namespace joulemark::train {

std::unique_ptr<Workload> make_resnet50(const Options& options, HyperParameters& settings,
                                        c10::intrusive_ptr<c10d::ProcessGroup> sync_group) {
    ResNetConfig config;
    config.blocks = settings.integers("blocks", config.blocks, 1);
    config.width = settings.integer("width", config.width, 1);
    config.zero_init_residual = settings.flag("zero_init_residual", config.zero_init_residual);
    config.sync_group = std::move(sync_group);
    settings.finish(options.model);

    ImageData data = open_images(options);
    config.classes = data.classes;
    ResNet network(config);
    return std::make_unique<ImageClassification>(
        network.ptr(), [network](const torch::Tensor& x) mutable { return network(x); }, std::move(data));
}

}  // namespace joulemark::train
