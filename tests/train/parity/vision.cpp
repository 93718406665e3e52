// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models.h"
#include "models/image_classification.h"
#include "models/image_workloads.h"
#include "models/nowcasting.h"

namespace joulemark::train::parity {
namespace {

/// In evaluation mode (batch norm uses its running statistics, no dropout), or with the batch's own
/// statistics where the fixture says so.
void set_mode(torch::nn::Module& module, const Inputs& inputs) {
    const auto own = inputs.find("batch_statistics");
    module.train(own != inputs.end() && own->second.item<bool>());
}

/// Cross-entropy of `network`'s logits for `images` and `labels`.
template <typename Network>
class Classifier final : public ParityModel {
  public:
    explicit Classifier(Network network) : network_(std::move(network)) {}
    torch::nn::Module& module() override { return *network_; }
    torch::Tensor loss(const Inputs& inputs) override {
        set_mode(*network_, inputs);
        return torch::cross_entropy_loss(network_(inputs.at("images")), inputs.at("labels"));
    }

  private:
    Network network_;
};

/// With the auxiliary head. Images come as one value per block of 13 x 13 pixels: 299 x 299 would be a large
/// fixture.
class InceptionParity final : public ParityModel {
  public:
    explicit InceptionParity(Inception network) : network_(std::move(network)) {}
    torch::nn::Module& module() override { return *network_; }
    torch::Tensor loss(const Inputs& inputs) override {
        set_mode(*network_, inputs);
        const torch::Tensor images =
            inputs.at("image_blocks").repeat_interleave(13, 2).repeat_interleave(13, 3);
        const auto [main, auxiliary] = network_->forward(images, /*with_head=*/true);
        const torch::Tensor& labels = inputs.at("labels");
        return torch::cross_entropy_loss(main, labels) +
               ImageClassification::auxiliary_weight * torch::cross_entropy_loss(auxiliary, labels);
    }

  private:
    Inception network_;
};

/// Mean squared error of the forecast.
class UNetParity final : public ParityModel {
  public:
    explicit UNetParity(UNet network) : network_(std::move(network)) {}
    torch::nn::Module& module() override { return *network_; }
    torch::Tensor loss(const Inputs& inputs) override {
        set_mode(*network_, inputs);
        return torch::mse_loss(network_(inputs.at("seen")), inputs.at("wanted"));
    }

  private:
    UNet network_;
};

/// A fixture gives the classes as a setting; in training they come with the data.
template <typename Config>
Config with_classes(Config config, HyperParameters& settings) {
    config.classes = settings.integer("classes", config.classes, 2);
    return config;
}

}  // namespace

std::unique_ptr<ParityModel> make_resnet50(HyperParameters& settings) {
    return std::make_unique<Classifier<ResNet>>(ResNet(with_classes(resnet_config(settings), settings)));
}

std::unique_ptr<ParityModel> make_vgg16(HyperParameters& settings) {
    return std::make_unique<Classifier<Vgg>>(Vgg(with_classes(vgg_config(settings), settings)));
}

std::unique_ptr<ParityModel> make_inception_v3(HyperParameters& settings) {
    return std::make_unique<InceptionParity>(Inception(with_classes(inception_config(settings), settings)));
}

std::unique_ptr<ParityModel> make_unet(HyperParameters& settings) {
    return std::make_unique<UNetParity>(UNet(unet_config(settings)));
}

}  // namespace joulemark::train::parity
