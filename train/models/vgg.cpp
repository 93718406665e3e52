// SPDX-License-Identifier: Apache-2.0
#include "models/vgg.h"

#include <array>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;

struct Block {
    std::int64_t convolutions;
    std::int64_t widths;  ///< times the width of the first block
};
constexpr std::array<Block, 5> blocks = {{{2, 1}, {2, 2}, {3, 4}, {3, 8}, {3, 8}}};
constexpr std::int64_t pooled = 7;  ///< pixels of a side behind the features, whatever the image

nn::Linear normal_linear(std::int64_t in, std::int64_t out) {
    nn::Linear layer(in, out);
    nn::init::normal_(layer->weight, 0, 0.01);
    nn::init::zeros_(layer->bias);
    return layer;
}

nn::ReLU relu() {
    return nn::ReLU(nn::ReLUOptions(/*inplace=*/true));
}

}  // namespace

VggImpl::VggImpl(const VggConfig& config) {
    std::int64_t channels = 3;
    for (const Block& block : blocks) {
        for (std::int64_t i = 0; i < block.convolutions; ++i) {
            const std::int64_t out = block.widths * config.width;
            nn::Conv2d conv(nn::Conv2dOptions(channels, out, 3).padding(1));
            nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
            nn::init::zeros_(conv->bias);
            features_->push_back(conv);
            features_->push_back(relu());
            channels = out;
        }
        features_->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2)));
    }
    classifier_ =
        nn::Sequential(normal_linear(channels * pooled * pooled, config.hidden), relu(),
                       nn::Dropout(config.dropout), normal_linear(config.hidden, config.hidden), relu(),
                       nn::Dropout(config.dropout), normal_linear(config.hidden, config.classes));
    register_module("features", features_);
    register_module("classifier", classifier_);
}

torch::Tensor VggImpl::forward(torch::Tensor x) {
    x = features_->forward(x);                            // [N, 8 w, H/32, W/32]
    x = torch::adaptive_avg_pool2d(x, {pooled, pooled});  // [N, 8 w, 7, 7]
    return classifier_->forward(x.flatten(1));
}

}  // namespace joulemark::train
