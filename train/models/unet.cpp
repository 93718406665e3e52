// SPDX-License-Identifier: Apache-2.0
#include "models/unet.h"

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Conv2d convolution(std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
}

}  // namespace

DoubleConvImpl::DoubleConvImpl(std::int64_t in, std::int64_t out, const UNetConfig& config)
    : conv1_(convolution(in, out)),
      conv2_(convolution(out, out)),
      norm1_(out, config.sync_group),
      norm2_(out, config.sync_group) {
    register_module("conv1", conv1_);
    register_module("norm1", norm1_);
    register_module("conv2", conv2_);
    register_module("norm2", norm2_);
}

Tensor DoubleConvImpl::forward(const Tensor& x) {
    return norm2_(conv2_(norm1_(conv1_(x)).relu_())).relu_();
}

UNetImpl::UNetImpl(const UNetConfig& config) {
    nn::ModuleList down;
    nn::ModuleList up;
    nn::ModuleList merge;
    std::int64_t channels = config.inputs;
    for (std::int64_t level = 0; level <= config.depth; ++level) {
        down_.emplace_back(channels, config.width << level, config);
        down->push_back(down_.back());
        channels = config.width << level;
    }
    for (std::int64_t level = config.depth - 1; level >= 0; --level) {
        const std::int64_t width = config.width << level;
        up_.emplace_back(nn::ConvTranspose2dOptions(2 * width, width, 2).stride(2));
        merge_.emplace_back(2 * width, width, config);
        up->push_back(up_.back());
        merge->push_back(merge_.back());
    }
    register_module("down", down);
    register_module("up", up);
    register_module("merge", merge);
    head_ = register_module("head", nn::Conv2d(nn::Conv2dOptions(config.width, config.outputs, 1)));
}

Tensor UNetImpl::forward(Tensor x) {
    std::vector<Tensor> levels;
    for (DoubleConv& block : down_) {
        if (!levels.empty()) {
            x = torch::max_pool2d(x, 2);
        }
        x = block(x);  // [N, w 2^level, H / 2^level, W / 2^level]
        levels.push_back(x);
    }
    levels.pop_back();
    for (std::size_t i = 0; i < up_.size(); ++i, levels.pop_back()) {
        x = merge_[i](torch::cat({levels.back(), up_[i](x)}, 1));
    }
    return head_(x);
}

}  // namespace joulemark::train
