// SPDX-License-Identifier: Apache-2.0
#include "models/afno.h"

#include <cmath>

#include "core/error.h"
#include "models/precision.h"

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

constexpr double weight_sd = 0.02;

nn::LayerNorm layer_norm(std::int64_t width) {
    return nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-6));
}

nn::Linear linear(std::int64_t in, std::int64_t out, bool bias = true) {
    nn::Linear layer(nn::LinearOptions(in, out).bias(bias));
    // The published one cuts its normal distribution at +-2, a hundred standard deviations: no cut at all.
    nn::init::normal_(layer->weight, 0, weight_sd);
    if (bias) {
        nn::init::zeros_(layer->bias);
    }
    return layer;
}

}  // namespace

AfnoConfig AfnoConfig::from(HyperParameters& settings) {
    AfnoConfig config;
    config.patch = settings.integer("patch", config.patch, 1);
    config.embed = settings.integer("embed", config.embed, 1);
    config.depth = settings.integer("depth", config.depth, 1, most_layers);
    config.blocks = settings.integer("blocks", config.blocks, 1, most_layers);
    config.mlp_ratio = settings.integer("mlp_ratio", config.mlp_ratio, 1);
    if (config.embed % config.blocks != 0) {
        throw bad_input("--set embed={} is not a multiple of blocks={}", config.embed, config.blocks);
    }
    return config;
}

double AfnoConfig::flops() const {
    const auto tokens = static_cast<double>(rows() * columns());
    const auto frequencies = static_cast<double>(rows() * modes());
    const auto width_ = static_cast<double>(embed);
    const auto patch_values = static_cast<double>(channels * patch * patch);
    const double embedding = 2 * tokens * patch_values * width_;  // the head costs the same
    const double mlp = 2 * 2 * tokens * width_ * width_ * static_cast<double>(mlp_ratio);
    const double filter = 2 * 2 * 4 * frequencies * width_ * width_ / static_cast<double>(blocks);
    const double transforms = 2 * 2.5 * tokens * std::log2(tokens) * width_;
    return 3 * (2 * embedding + static_cast<double>(depth) * (mlp + filter + transforms));
}

AfnoFilterImpl::AfnoFilterImpl(const AfnoConfig& config) : blocks_(config.blocks), modes_(config.modes()) {
    const std::int64_t width = config.embed / config.blocks;
    const auto normal = [](at::IntArrayRef shape) { return weight_sd * torch::randn(shape); };
    w1_ = register_parameter("w1", normal({2, blocks_, width, width}));
    b1_ = register_parameter("b1", normal({2, blocks_, width}));
    w2_ = register_parameter("w2", normal({2, blocks_, width, width}));
    b2_ = register_parameter("b2", normal({2, blocks_, width}));
}

Tensor AfnoFilterImpl::complex_linear(const Tensor& x, const Tensor& w, const Tensor& bias) const {
    const Tensor re = w[0];
    const Tensor im = w[1];  // [blocks, in, out]
    // (a + ib)(re + i im) as one real product: rows for a and b, columns for the result's two parts.
    const Tensor matrix = torch::stack({torch::stack({re, im}, -1), torch::stack({-im, re}, -1)},
                                       2);  // [blocks, in, 2, out, 2]
    return torch::baddbmm(bias.permute({1, 2, 0}).reshape({blocks_, 1, -1}), x,
                          matrix.view({blocks_, 2 * w.size(2), 2 * w.size(3)}));
}

Tensor AfnoFilterImpl::forward(const Tensor& x) {
    const Tensor wide = at_least_float32(x);
    const std::int64_t n = x.size(0);
    const std::int64_t rows = x.size(1);
    const std::int64_t columns = x.size(2);
    const std::int64_t embed = x.size(3);

    const Tensor spectrum = torch::fft_rfft2(wide, {}, {1, 2}, "ortho");  // [N, r, c/2+1, embed]
    Tensor z = torch::view_as_real(spectrum.narrow(2, 0, modes_));        // [N, r, m, embed, 2]
    z = z.reshape({n * rows * modes_, blocks_, -1}).transpose(0, 1);      // [blocks, N r m, 2 b]
    z = torch::relu(complex_linear(z, w1_, b1_));
    z = complex_linear(z, w2_, b2_);
    z = torch::softshrink(z.to(wide.scalar_type()), sparsity_threshold);
    z = z.transpose(0, 1).reshape({n, rows, modes_, embed, 2});
    // The inverse transform takes the frequencies that are not there as zero.
    const Tensor mixed =
        torch::fft_irfft2(torch::view_as_complex(z), at::IntArrayRef{rows, columns}, {1, 2}, "ortho");
    return mixed.to(x.scalar_type()) + x;
}

AfnoBlockImpl::AfnoBlockImpl(const AfnoConfig& config)
    : norm1_(layer_norm(config.embed)),
      norm2_(layer_norm(config.embed)),
      filter_(config),
      fc1_(linear(config.embed, config.mlp_ratio * config.embed)),
      fc2_(linear(config.mlp_ratio * config.embed, config.embed)) {
    register_module("norm1", norm1_);
    register_module("filter", filter_);
    register_module("norm2", norm2_);
    const auto mlp = register_module("mlp", std::make_shared<nn::Module>());
    mlp->register_module("fc1", fc1_);
    mlp->register_module("fc2", fc2_);
}

Tensor AfnoBlockImpl::forward(const Tensor& x) {
    const Tensor mixed = filter_(norm1_(x)) + x;
    return fc2_(torch::gelu(fc1_(norm2_(mixed)))) + mixed;
}

AfnoNetImpl::AfnoNetImpl(const AfnoConfig& config)
    : config_(config),
      proj_(nn::Conv2dOptions(config.channels, config.embed, config.patch).stride(config.patch)),
      head_(linear(config.embed, config.channels * config.patch * config.patch, false)) {
    pos_embed_ = register_parameter(
        "pos_embed", weight_sd * torch::randn({1, config.rows() * config.columns(), config.embed}));
    register_module("patch_embed", std::make_shared<nn::Module>())->register_module("proj", proj_);
    register_module("blocks", blocks_);
    for (std::int64_t block = 0; block < config.depth; ++block) {
        blocks_->push_back(AfnoBlock(config));
    }
    // The published network has this norm and does not use it: it keeps its place in the state and is not
    // trained.
    for (Tensor& unused : register_module("norm", layer_norm(config.embed))->parameters()) {
        unused.requires_grad_(false);
    }
    register_module("head", head_);
}

Tensor AfnoNetImpl::forward(const Tensor& fields) {
    const std::int64_t n = fields.size(0);
    const std::int64_t rows = config_.rows();
    const std::int64_t columns = config_.columns();
    Tensor x = proj_(fields).flatten(2).transpose(1, 2) + pos_embed_;  // [N, r c, embed]
    x = x.reshape({n, rows, columns, config_.embed});
    for (const auto& block : *blocks_) {
        x = block->as<AfnoBlockImpl>()->forward(x);
    }
    const std::int64_t patch = config_.patch;
    return head_(x)
        .view({n, rows, columns, patch, patch, config_.channels})
        .permute({0, 5, 1, 3, 2, 4})
        .reshape({n, config_.channels, config_.height, config_.width});
}

}  // namespace joulemark::train
