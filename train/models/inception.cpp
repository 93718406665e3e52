// SPDX-License-Identifier: Apache-2.0
#include "models/inception.h"

#include <utility>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;
using Shape = ConvNormImpl::Shape;
using Branch = InceptionBlockImpl::Branch;
using Branches = std::vector<Branch>;
constexpr auto input = InceptionBlockImpl::Start::input;
constexpr auto average_pool = InceptionBlockImpl::Start::average_pool;
constexpr auto max_pool = InceptionBlockImpl::Start::max_pool;

constexpr Shape k1 = {1, 1};
constexpr Shape k3 = {3, 3};
constexpr Shape k5 = {5, 5};
constexpr Shape k1x3 = {1, 3};
constexpr Shape k3x1 = {3, 1};
constexpr Shape k1x7 = {1, 7};
constexpr Shape k7x1 = {7, 1};
constexpr Shape k3_half = {3, 3, /*stride=*/2, /*pad=*/false};
constexpr Shape k3_inside = {3, 3, /*stride=*/1, /*pad=*/false};
constexpr Shape k5_inside = {5, 5, /*stride=*/1, /*pad=*/false};

// torchvision draws from a normal truncated at 20 deviations, which cuts off nothing.
constexpr double deviation = 0.1;
constexpr double deviation_of_head = 0.001;

Branches block_a(std::int64_t pool_features) {
    return {{input, {{"branch1x1", 64, k1}}},
            {input, {{"branch5x5_1", 48, k1}, {"branch5x5_2", 64, k5}}},
            {input, {{"branch3x3dbl_1", 64, k1}, {"branch3x3dbl_2", 96, k3}, {"branch3x3dbl_3", 96, k3}}},
            {average_pool, {{"branch_pool", pool_features, k1}}}};
}

Branches block_b() {
    return {
        {input, {{"branch3x3", 384, k3_half}}},
        {input, {{"branch3x3dbl_1", 64, k1}, {"branch3x3dbl_2", 96, k3}, {"branch3x3dbl_3", 96, k3_half}}},
        {max_pool, {}}};
}

Branches block_c(std::int64_t c7) {
    return {{input, {{"branch1x1", 192, k1}}},
            {input, {{"branch7x7_1", c7, k1}, {"branch7x7_2", c7, k1x7}, {"branch7x7_3", 192, k7x1}}},
            {input,
             {{"branch7x7dbl_1", c7, k1},
              {"branch7x7dbl_2", c7, k7x1},
              {"branch7x7dbl_3", c7, k1x7},
              {"branch7x7dbl_4", c7, k7x1},
              {"branch7x7dbl_5", 192, k1x7}}},
            {average_pool, {{"branch_pool", 192, k1}}}};
}

Branches block_d() {
    return {{input, {{"branch3x3_1", 192, k1}, {"branch3x3_2", 320, k3_half}}},
            {input,
             {{"branch7x7x3_1", 192, k1},
              {"branch7x7x3_2", 192, k1x7},
              {"branch7x7x3_3", 192, k7x1},
              {"branch7x7x3_4", 192, k3_half}}},
            {max_pool, {}}};
}

Branches block_e() {
    return {
        {input, {{"branch1x1", 320, k1}}},
        {input, {{"branch3x3_1", 384, k1}, {"branch3x3_2a", 384, k1x3}, {"branch3x3_2b", 384, k3x1}}, true},
        {input,
         {{"branch3x3dbl_1", 448, k1},
          {"branch3x3dbl_2", 384, k3},
          {"branch3x3dbl_3a", 384, k1x3},
          {"branch3x3dbl_3b", 384, k3x1}},
         true},
        {average_pool, {{"branch_pool", 192, k1}}}};
}

/// From ImageNet's normalisation to (x - 0.5) / 0.5.
Tensor transformed(const Tensor& x) {
    return torch::stack({x.select(1, 0) * (0.229 / 0.5) + (0.485 - 0.5) / 0.5,
                         x.select(1, 1) * (0.224 / 0.5) + (0.456 - 0.5) / 0.5,
                         x.select(1, 2) * (0.225 / 0.5) + (0.406 - 0.5) / 0.5},
                        1);
}

nn::Linear linear_of_deviation(std::int64_t in, std::int64_t out, double sd) {
    nn::Linear layer(in, out);
    nn::init::normal_(layer->weight, 0, sd);
    return layer;
}

}  // namespace

ConvNormImpl::ConvNormImpl(std::int64_t in, std::int64_t out, const Shape& shape,
                           const InceptionConfig& config)
    : bn_(out, config.sync_group, /*epsilon=*/1e-3) {
    nn::Conv2dOptions options(in, out, {shape.height, shape.width});
    options.stride(shape.stride).bias(false);
    if (shape.pad) {
        options.padding({shape.height / 2, shape.width / 2});
    }
    conv_ = register_module("conv", nn::Conv2d(options));
    register_module("bn", bn_);
    nn::init::normal_(conv_->weight, 0, deviation);
}

Tensor ConvNormImpl::forward(const Tensor& x) {
    return bn_(conv_(x)).relu_();
}

InceptionBlockImpl::InceptionBlockImpl(std::int64_t in, const std::vector<Branch>& branches,
                                       const InceptionConfig& config) {
    for (const Branch& branch : branches) {
        Path path{branch.start, {}, branch.forked};
        std::vector<std::int64_t> channels = {in};  // in front of each layer, and behind the last
        for (const Layer& layer : branch.chain) {
            const bool second_of_fork = branch.forked && path.chain.size() + 1 == branch.chain.size();
            const std::int64_t from = second_of_fork ? *(channels.end() - 2) : channels.back();
            channels.push_back(config.channels(layer.out));
            path.chain.push_back(
                register_module(layer.name, ConvNorm(from, channels.back(), layer.shape, config)));
        }
        out_channels_ += channels.back() + (branch.forked ? *(channels.end() - 2) : 0);
        paths_.push_back(std::move(path));
    }
}

Tensor InceptionBlockImpl::forward(const Tensor& x) {
    std::vector<Tensor> outputs;
    for (Path& path : paths_) {
        Tensor y = x;
        if (path.start == Start::average_pool) {
            y = torch::avg_pool2d(x, 3, 1, 1);
        } else if (path.start == Start::max_pool) {
            y = torch::max_pool2d(x, 3, 2);
        }
        const std::size_t straight = path.chain.size() - (path.forked ? 2 : 0);
        for (std::size_t i = 0; i < straight; ++i) {
            y = path.chain[i](y);
        }
        if (path.forked) {
            outputs.push_back(path.chain[straight](y));
            y = path.chain[straight + 1](y);
        }
        outputs.push_back(y);
    }
    return torch::cat(outputs, 1);
}

InceptionAuxImpl::InceptionAuxImpl(std::int64_t in, const InceptionConfig& config)
    : conv0_(in, config.channels(128), k1, config),
      conv1_(config.channels(128), config.channels(768), k5_inside, config),
      fc_(linear_of_deviation(config.channels(768), config.classes, deviation_of_head)) {
    register_module("conv0", conv0_);
    register_module("conv1", conv1_);
    register_module("fc", fc_);
}

Tensor InceptionAuxImpl::forward(Tensor x) {
    x = torch::avg_pool2d(x, 5, 3);  // [N, 768, 5, 5] from 17 x 17
    x = conv1_(conv0_(x));           // [N, 768, 1, 1]
    return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

InceptionImpl::InceptionImpl(const InceptionConfig& config)
    : transform_input_(config.transform_input),
      conv_1a_(3, config.channels(32), k3_half, config),
      conv_2a_(config.channels(32), config.channels(32), k3_inside, config),
      conv_2b_(config.channels(32), config.channels(64), k3, config),
      conv_3b_(config.channels(64), config.channels(80), k1, config),
      conv_4a_(config.channels(80), config.channels(192), k3_inside, config),
      dropout_(config.dropout) {
    register_module("Conv2d_1a_3x3", conv_1a_);
    register_module("Conv2d_2a_3x3", conv_2a_);
    register_module("Conv2d_2b_3x3", conv_2b_);
    register_module("Conv2d_3b_1x1", conv_3b_);
    register_module("Conv2d_4a_3x3", conv_4a_);
    std::int64_t channels = config.channels(192);
    const auto add = [&](std::vector<InceptionBlock>& part, const char* name, const Branches& branches) {
        part.push_back(register_module(name, InceptionBlock(channels, branches, config)));
        channels = part.back()->out_channels();
    };
    add(before_head_, "Mixed_5b", block_a(32));
    add(before_head_, "Mixed_5c", block_a(64));
    add(before_head_, "Mixed_5d", block_a(64));
    add(before_head_, "Mixed_6a", block_b());
    add(before_head_, "Mixed_6b", block_c(128));
    add(before_head_, "Mixed_6c", block_c(160));
    add(before_head_, "Mixed_6d", block_c(160));
    add(before_head_, "Mixed_6e", block_c(192));
    if (config.aux_logits) {
        head_ = register_module("AuxLogits", InceptionAux(channels, config));
    }
    add(behind_head_, "Mixed_7a", block_d());
    add(behind_head_, "Mixed_7b", block_e());
    add(behind_head_, "Mixed_7c", block_e());
    register_module("dropout", dropout_);
    fc_ = register_module("fc", linear_of_deviation(channels, config.classes, deviation));
}

InceptionImpl::Logits InceptionImpl::forward(Tensor x, bool with_head) {
    if (transform_input_) {
        x = transformed(x);
    }
    x = conv_2b_(conv_2a_(conv_1a_(x)));  // [N, 64, 147, 147] from 299 x 299
    x = torch::max_pool2d(x, 3, 2);
    x = conv_4a_(conv_3b_(x));       // [N, 192, 71, 71]
    x = torch::max_pool2d(x, 3, 2);  // [N, 192, 35, 35]
    for (InceptionBlock& block : before_head_) {
        x = block(x);  // [N, 768, 17, 17]
    }
    Logits logits;
    if (with_head && !head_.is_empty()) {
        logits.auxiliary = head_(x);
    }
    for (InceptionBlock& block : behind_head_) {
        x = block(x);  // [N, 2048, 8, 8]
    }
    logits.main = fc_(dropout_(torch::adaptive_avg_pool2d(x, {1, 1})).flatten(1));
    return logits;
}

}  // namespace joulemark::train
