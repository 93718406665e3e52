// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/resnet_workload.h"

namespace joulemark::train {

std::span<const Model> models() {
    static const std::array<Model, 1> all = {{
        {.name = "resnet50",
         .source = "He et al. 2016, as torchvision.models.resnet50",
         .parameters = 25'557'032,
         .data = "ImageNet: a folder of JPEG images, or synthetic",
         .defaults = {.epochs = 100,
                      .local_batch = 256,
                      .image_size = 224,
                      .classes = 1000,
                      .samples = 1'281'167,
                      .lr = 0.1,
                      .lr_scaling = LrScaling::linear,
                      .lr_schedule = LrCurve::plateau,
                      .warmup_share = 0.05,
                      .momentum = 0.9,
                      .weight_decay = 1e-4},
         .make = make_resnet50},
    }};
    return all;
}

const Model& find_model(const std::string& name) {
    const auto found = std::ranges::find(models(), name, &Model::name);
    if (found == models().end()) {
        throw bad_input("there is no model '{}': see joulemark-train --list", name);
    }
    return *found;
}

}  // namespace joulemark::train
