// SPDX-License-Identifier: Apache-2.0
#include "engine/registry.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "models/fourcastnet_workload.h"
#include "models/image_workloads.h"
#include "models/language_workload.h"
#include "models/molecule_property.h"
#include "models/nowcasting.h"

namespace joulemark::train {
namespace {

constexpr const char* images = "ImageNet: a folder of JPEG images, tar shards, or synthetic";

/// What the studies' molecule models are trained with, on QM9 without 10,000 molecules held out.
constexpr Defaults molecule_defaults = {
    .epochs = 100, .local_batch = 16, .samples = 123'885, .optimizer = OptimizerKind::adam, .lr = 1e-3};
constexpr const char* molecule_data = "QM9: a folder of its .xyz files, or synthetic";

std::vector<Use> image_uses(bool batch_norm) {
    std::vector<Use> uses = {{"--image-size"}, {"--classes"}, {"--channels-last"}};
    if (batch_norm) {
        uses.push_back({"--sync-bn"});
    }
    return uses;
}

}  // namespace

std::span<const Model> models() {
    static const std::array all = std::to_array<Model>({
        {.name = "resnet50",
         .source = "He et al. 2016, as torchvision.models.resnet50",
         .parameters = 25'557'032,
         .data = images,
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
         .uses = image_uses(true),
         .make = make_resnet50},
        {.name = "vgg16",
         .source = "Simonyan, Zisserman 2015, as torchvision.models.vgg16",
         .parameters = 138'357'544,
         .data = images,
         .defaults = {.epochs = 90,
                      .local_batch = 128,
                      .image_size = 224,
                      .classes = 1000,
                      .samples = 1'281'167,
                      .lr = 0.01,
                      .lr_scaling = LrScaling::linear,
                      .lr_schedule = LrCurve::plateau,
                      .warmup_share = 0.05,
                      .momentum = 0.9,
                      .weight_decay = 1e-4},
         .uses = image_uses(false),
         .make = make_vgg16},
        {.name = "inception_v3",
         .source = "Szegedy et al. 2016, as torchvision.models.inception_v3, with auxiliary head",
         .parameters = 27'161'264,
         .data = images,
         .defaults = {.epochs = 100,
                      .local_batch = 128,
                      .image_size = 299,
                      .classes = 1000,
                      .samples = 1'281'167,
                      .lr = 0.1,
                      .lr_scaling = LrScaling::linear,
                      .lr_schedule = LrCurve::plateau,
                      .warmup_share = 0.05,
                      .momentum = 0.9,
                      .weight_decay = 1e-4},
         .uses = image_uses(true),
         .make = make_inception_v3},
        {.name = "unet",
         .source = "Ronneberger et al. 2015, as tests/reference/unet.py",
         .parameters = 7'766'284,
         .data = "SEVIR: HDF5 image sequences, or synthetic",
         .defaults = {.epochs = 100,
                      .local_batch = 16,
                      .image_size = 384,
                      .samples = 35'718,
                      .optimizer = OptimizerKind::adam,
                      .lr = 1e-3,
                      .lr_batch = 16,
                      .lr_schedule = LrCurve::plateau},
         .uses = {{"--image-size", /*synthetic_only=*/true}, {"--channels-last"}, {"--sync-bn"}},
         .make = make_unet},
        {.name = "bert",
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
         .uses = {{"--vocab"}},
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
         .uses = {{"--vocab"}},
         .make = make_distilbert},
        {.name = "schnet",
         .source = "Schuett et al. 2017, as PyTorch Geometric's SchNet",
         .parameters = 455'809,
         .data = molecule_data,
         .defaults = molecule_defaults,
         .make = make_schnet},
        {.name = "dimenet",
         .source = "Klicpera et al. 2020, as PyTorch Geometric's DimeNet",
         .parameters = 2'100'070,
         .data = molecule_data,
         .defaults = molecule_defaults,
         .make = make_dimenet},
        {.name = "pna",
         .source = "Corso et al. 2020, PyTorch Geometric's PNAConv as in its example",
         .parameters = 683'101,
         .data = molecule_data,
         .defaults = molecule_defaults,
         .make = make_pna},
        {.name = "nnconv",
         .source = "Gilmer et al. 2017, PyTorch Geometric's NNConv and Set2Set as in its example",
         .parameters = 617'025,
         .data = molecule_data,
         .defaults = molecule_defaults,
         .make = make_nnconv},
        {.name = "fourcastnet",
         .source = "Pathak et al. 2022, as NVlabs FourCastNet's AFNONet",
         .parameters = 74'691'840,
         .data = "ERA5: a folder of yearly HDF5 files, or synthetic",
         .defaults = {.epochs = 80,
                      .local_batch = 4,
                      .samples = 54'019,  // pairs of 6-hourly fields in 1979 to 2015
                      .optimizer = OptimizerKind::adam,
                      .lr = 5e-4,
                      .lr_schedule = LrCurve::cosine},
         .make = make_fourcastnet},
    });
    return all;
}

std::vector<KnownModel> known_models() {
    std::vector<KnownModel> known;
    for (const Model& model : models()) {
        known.push_back({model.name, model.defaults, model.uses});
    }
    return known;
}

const Model& find_model(const std::string& name) {
    const auto found = std::ranges::find(models(), name, &Model::name);
    if (found == models().end()) {
        throw bad_input("there is no model '{}': see joulemark-train --list", name);
    }
    return *found;
}

}  // namespace joulemark::train
