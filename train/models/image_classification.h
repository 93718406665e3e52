// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/images.h"
#include "engine/options.h"
#include "engine/workload.h"

namespace joulemark::train {

struct ImageData {
    std::unique_ptr<ImageDataset> training;
    std::unique_ptr<ImageDataset> validation;  ///< null where there is none
    std::int64_t classes = 0;
};

/// --dataset, --samples, --eval-samples, --image-size, --classes as data sets. Throws bad_input naming the
/// folder.
ImageData open_images(const Options& options);

/// A network from images to class logits: ImageNet's normalisation, cross-entropy, top-1 error. Where the
/// network has an auxiliary head, 0.4 times its loss is added in training (Szegedy et al. 2016, section 4).
class ImageClassification final : public Workload {
  public:
    static constexpr double auxiliary_weight = 0.4;

    struct Logits {
        torch::Tensor main;            ///< [B, classes]
        torch::Tensor auxiliary = {};  ///< the same; undefined where there is none
    };
    using Network = std::function<Logits(const torch::Tensor& images, bool training)>;
    /// `flops` of training on one image.
    ImageClassification(std::shared_ptr<torch::nn::Module> module, Network network, ImageData data,
                        double flops)
        : module_(std::move(module)), network_(std::move(network)), data_(std::move(data)), flops_(flops) {}

    torch::nn::Module& module() override { return *module_; }
    const Dataset& training_data() const override { return *data_.training; }
    const Dataset* validation_data() const override { return data_.validation.get(); }
    Outcome forward(const Batch& batch) override;
    std::string quality_name() const override { return "top1_error"; }
    std::optional<double> flops_per_sample() const override { return flops_; }

  private:
    std::shared_ptr<torch::nn::Module> module_;
    Network network_;
    ImageData data_;
    double flops_;
    torch::Tensor mean_;        ///< [1, 3, 1, 1], on the model's device
    torch::Tensor inverse_sd_;  ///< the same
    at::MemoryFormat format_ = at::MemoryFormat::Contiguous;
};

}  // namespace joulemark::train
