// SPDX-License-Identifier: Apache-2.0
#include "models/image_classification.h"

#include <limits>

#include "core/error.h"
#include "data/image_files.h"

namespace joulemark::train {
namespace {

ImageData synthetic_images(const Options& options) {
    const Defaults& defaults = options.defaults;
    ImageData data;
    data.classes = options.classes.value_or(defaults.classes);
    const std::int64_t samples = options.samples.value_or(defaults.samples);
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (samples > most || options.eval_samples > most) {
        throw bad_input("the synthetic data set holds at most {} samples", most);
    }
    const auto make = [&](std::int64_t size, Split split) {
        return std::make_unique<SyntheticImages>(static_cast<std::uint32_t>(size), data.classes,
                                                 options.image_size, options.seed, split);
    };
    data.training = make(samples, Split::training);
    data.validation = options.eval_samples > 0 ? make(options.eval_samples, Split::validation) : nullptr;
    return data;
}

ImageData folder_images(const Options& options) {
    const ImageFolders folders = find_image_folders(options.dataset);
    auto training = open_images_at(folders.train);
    ImageData data;
    const auto found = static_cast<std::int64_t>(training->classes().size());
    data.classes = options.classes.value_or(found);
    if (data.classes < found) {
        throw bad_input("--classes {} is fewer than the {} class folders of {}", data.classes, found,
                        folders.train.string());
    }
    if (!folders.validation.empty()) {
        data.validation =
            std::make_unique<StoredImages>(open_images_at(folders.validation, training->classes()),
                                           options.image_size, options.seed, Split::validation);
    }
    data.training = std::make_unique<StoredImages>(std::move(training), options.image_size, options.seed,
                                                   Split::training);
    return data;
}

}  // namespace

ImageData open_images(const Options& options) {
    return options.dataset == "synthetic" ? synthetic_images(options) : folder_images(options);
}

Outcome ImageClassification::forward(const Batch& batch) {
    if (!mean_.defined()) {
        const auto like = torch::TensorOptions(torch::kFloat32).device(batch.target.device());
        mean_ = (torch::tensor({0.485, 0.456, 0.406}) * 255).to(like).view({1, 3, 1, 1});
        inverse_sd_ = (1 / (torch::tensor({0.229, 0.224, 0.225}) * 255)).to(like).view({1, 3, 1, 1});
        format_ = module_->parameters().front().suggest_memory_format();
    }
    torch::Tensor images = batch.inputs.front().to(torch::kFloat32).sub_(mean_).mul_(inverse_sd_);
    images = images.contiguous(format_);  // they come as NHWC
    const Logits logits = network_(images, module_->is_training());
    const auto loss_of = [&](const torch::Tensor& scores) {
        return torch::cross_entropy_loss(scores.to(torch::kFloat32), batch.target);
    };
    torch::Tensor loss = loss_of(logits.main);
    if (logits.auxiliary.defined()) {
        loss = loss + auxiliary_weight * loss_of(logits.auxiliary);
    }
    return {.loss = loss, .quality_sum = logits.main.detach().argmax(1).ne(batch.target).sum()};
}

}  // namespace joulemark::train
