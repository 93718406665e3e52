// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/language_workload.h"
#include "models/resnet_workload.h"

namespace joulemark::train {

std::span<const Model> models() {
    static const std::array<Model, 3> all = {{
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
        {.name = "bert-base",
         .source = "Devlin et al. 2019, as transformers' BertForMaskedLM",
         .parameters = 109'514'298,
         .data = "WikiText-103: raw text and --vocab, or synthetic",
         .defaults = {.epochs = 3,
                      .local_batch = 64,
                      .samples = 950'000,
                      .optimizer = OptimizerKind::adamw,
                      .lr = 1e-4,
                      .lr_schedule = LrCurve::linear,
                      .warmup_share = 0.05,
                      .weight_decay = 0.01},
         .make = make_bert},
        {.name = "distilbert",
         .source = "Sanh et al. 2019, as transformers' DistilBertForMaskedLM",
         .parameters = 66'985'530,
         .data = "WikiText-103: raw text and --vocab, or synthetic",
         .defaults = {.epochs = 3,
                      .local_batch = 64,
                      .samples = 950'000,
                      .optimizer = OptimizerKind::adamw,
                      .lr = 1e-4,
                      .lr_schedule = LrCurve::linear,
                      .warmup_share = 0.05,
                      .weight_decay = 0.01},
         .make = make_distilbert},
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
