// SPDX-License-Identifier: Apache-2.0
#include "models/image_workloads.h"

#include <bit>
#include <utility>

#include "core/error.h"
#include "models/image_classification.h"

namespace joulemark::train {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

std::unique_ptr<Workload> classify(const Options& options, std::shared_ptr<torch::nn::Module> module,
                                   ImageClassification::Network network, ImageData data) {
    return std::make_unique<ImageClassification>(std::move(module), std::move(network), std::move(data),
                                                 options.image_size);
}

}  // namespace

ResNetConfig resnet_config(HyperParameters& settings) {
    ResNetConfig config;
    config.blocks = settings.integers("blocks", config.blocks, 1, most_layers);
    config.width = settings.integer("width", config.width, 1);
    config.zero_init_residual = settings.flag("zero_init_residual", config.zero_init_residual);
    return config;
}

VggConfig vgg_config(HyperParameters& settings) {
    VggConfig config;
    config.width = settings.integer("width", config.width, 1);
    config.hidden = settings.integer("hidden", config.hidden, 1);
    config.dropout = settings.real("dropout", config.dropout, 0, 1);
    return config;
}

InceptionConfig inception_config(HyperParameters& settings) {
    InceptionConfig config;
    config.narrow = settings.integer("narrow", config.narrow, 1);
    if (config.narrow > 32 || !std::has_single_bit(static_cast<std::uint64_t>(config.narrow))) {
        throw bad_input(
            "--set narrow={}: it takes 1, 2, 4, 8, 16 or 32, by which all channel counts are divided",
            config.narrow);
    }
    config.aux_logits = settings.flag("aux_logits", config.aux_logits);
    config.dropout = settings.real("dropout", config.dropout, 0, 1);
    config.transform_input = settings.flag("transform_input", config.transform_input);
    return config;
}

std::unique_ptr<Workload> make_resnet50(const Options& options, HyperParameters& settings, Group sync_group) {
    ResNetConfig config = resnet_config(settings);
    settings.finish(options.model);
    ImageData data = open_images(options);
    config.classes = data.classes;
    config.sync_group = std::move(sync_group);
    ResNet network(config);
    return classify(
        options, network.ptr(),
        [network](const torch::Tensor& x, bool) mutable { return ImageClassification::Logits{network(x)}; },
        std::move(data));
}

std::unique_ptr<Workload> make_vgg16(const Options& options, HyperParameters& settings, Group) {
    VggConfig config = vgg_config(settings);
    settings.finish(options.model);
    if (options.image_size < 32) {
        throw bad_input("vgg16 halves the image five times: --image-size {} is below 32", options.image_size);
    }
    ImageData data = open_images(options);
    config.classes = data.classes;
    Vgg network(config);
    return classify(
        options, network.ptr(),
        [network](const torch::Tensor& x, bool) mutable { return ImageClassification::Logits{network(x)}; },
        std::move(data));
}

std::unique_ptr<Workload> make_inception_v3(const Options& options, HyperParameters& settings,
                                            Group sync_group) {
    InceptionConfig config = inception_config(settings);
    settings.finish(options.model);
    const std::int64_t smallest =
        config.aux_logits ? InceptionImpl::smallest_image : InceptionImpl::smallest_image_without_head;
    if (options.image_size < smallest) {
        throw bad_input("inception_v3 needs images of at least {} pixels{}, not {}", smallest,
                        config.aux_logits ? fmt::format(" ({} with --set aux_logits=false)",
                                                        InceptionImpl::smallest_image_without_head)
                                          : "",
                        options.image_size);
    }
    ImageData data = open_images(options);
    config.classes = data.classes;
    config.sync_group = std::move(sync_group);
    Inception network(config);
    return classify(
        options, network.ptr(),
        [network](const torch::Tensor& x, bool training) mutable {
            const auto [main, auxiliary] = network->forward(x, training);
            return ImageClassification::Logits{main, auxiliary};
        },
        std::move(data));
}

}  // namespace joulemark::train
