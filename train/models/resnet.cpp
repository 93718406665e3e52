// SPDX-License-Identifier: Apache-2.0
#include "models/resnet.h"

#include <string>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    nn::Conv2d conv(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
    nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    return conv;
}

}  // namespace

BottleneckImpl::BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride,
                               const ResNetConfig& config)
    : conv1_(convolution(in, width, 1)),
      conv2_(convolution(width, width, 3, stride)),
      conv3_(convolution(width, expansion * width, 1)),
      bn1_(width, config.sync_group),
      bn2_(width, config.sync_group),
      bn3_(expansion * width, config.sync_group) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    register_module("conv3", conv3_);
    register_module("bn3", bn3_);
    if (config.zero_init_residual) {
        nn::init::zeros_(bn3_->weight);
    }
    if (stride != 1 || in != expansion * width) {
        downsample_ =
            register_module("downsample", nn::Sequential(convolution(in, expansion * width, 1, stride),
                                                         BatchNorm2d(expansion * width, config.sync_group)));
    }
}

Tensor BottleneckImpl::forward(const Tensor& x) {
    Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y)).relu_();
    y = bn3_(conv3_(y));
    return y.add_(downsample_.is_empty() ? x : downsample_->forward(x)).relu_();
}

ResNetImpl::ResNetImpl(const ResNetConfig& config)
    : conv1_(convolution(3, config.width, 7, 2)), bn1_(config.width, config.sync_group) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    std::int64_t channels = config.width;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        const std::int64_t width = config.width << layer;
        for (std::int64_t block = 0; block < config.blocks[layer]; ++block) {
            layers_[layer]->push_back(Bottleneck(channels, width, layer > 0 && block == 0 ? 2 : 1, config));
            channels = BottleneckImpl::expansion * width;
        }
        register_module("layer" + std::to_string(layer + 1), layers_[layer]);
    }
    fc_ = register_module("fc", nn::Linear(channels, config.classes));
}

Tensor ResNetImpl::forward(Tensor x) {
    x = bn1_(conv1_(x)).relu_();                                      // [N, w, H/2, W/2]
    x = torch::max_pool2d(x, /*kernel=*/3, /*stride=*/2, /*pad=*/1);  // [N, w, H/4, W/4]
    for (auto& layer : layers_) {
        x = layer->forward(x);  // [N, 4w, H/4, W/4] .. [N, 32w, H/32, W/32]
    }
    return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace joulemark::train
