// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <torch/torch.h>

#include "engine/hyper_parameters.h"

namespace joulemark::train {

/// FourCastNet's network (Pathak et al. 2022) of adaptive Fourier neural operators (Guibas et al. 2022), with
/// the state-dict names, shapes and initial distributions of the published AFNONet.
struct AfnoConfig {
    std::int64_t channels = 20;
    std::int64_t height = 720;  ///< multiple of the patch
    std::int64_t width = 1440;  ///< the same
    std::int64_t patch = 8;
    std::int64_t embed = 768;  ///< multiple of the blocks
    std::int64_t depth = 12;
    std::int64_t blocks = 8;  ///< diagonal blocks of a filter's complex weights
    std::int64_t mlp_ratio = 4;

    /// Patch, embed, depth, blocks and mlp_ratio of --set. Throws bad_input for a value that cannot be.
    static AfnoConfig from(HyperParameters& settings);

    std::int64_t rows() const { return height / patch; }
    std::int64_t columns() const { return width / patch; }
    /// Frequencies along the width that a filter works on. The published one counts them from the height:
    /// rows / 2 + 1, whatever the width; those beyond pass through its skip connection only.
    std::int64_t modes() const { return std::min(columns() / 2 + 1, rows() / 2 + 1); }
    /// Forward and backward of one field; docs/workloads.md derives it.
    double flops() const;
};

/// Token mixing in the frequency domain: a two-layer network with block-diagonal complex weights on every
/// kept frequency, soft-thresholded, plus a skip connection.
class AfnoFilterImpl : public torch::nn::Module {
  public:
    explicit AfnoFilterImpl(const AfnoConfig& config);
    /// [N, rows, columns, embed] to the same. Fourier transforms are computed in at least fp32.
    torch::Tensor forward(const torch::Tensor& x);

  private:
    /// x [blocks, n, 2 b] times the complex weights w [2, blocks, b, b] plus the bias [2, blocks, b]; b
    /// complex numbers lie as b pairs (real, imaginary).
    torch::Tensor complex_linear(const torch::Tensor& x, const torch::Tensor& w,
                                 const torch::Tensor& bias) const;

    static constexpr double sparsity_threshold = 0.01;
    std::int64_t blocks_, modes_;
    torch::Tensor w1_, b1_, w2_, b2_;
};
TORCH_MODULE(AfnoFilter);

class AfnoBlockImpl : public torch::nn::Module {
  public:
    explicit AfnoBlockImpl(const AfnoConfig& config);
    torch::Tensor forward(const torch::Tensor& x);

  private:
    torch::nn::LayerNorm norm1_, norm2_;
    AfnoFilter filter_;
    torch::nn::Linear fc1_, fc2_;
};
TORCH_MODULE(AfnoBlock);

class AfnoNetImpl : public torch::nn::Module {
  public:
    explicit AfnoNetImpl(const AfnoConfig& config);

    /// Fields [N, channels, height, width] to the fields one time step later.
    torch::Tensor forward(const torch::Tensor& fields);

  private:
    AfnoConfig config_;
    torch::Tensor pos_embed_;  ///< [1, rows x columns, embed]
    torch::nn::Conv2d proj_;
    torch::nn::ModuleList blocks_;
    torch::nn::Linear head_;
};
TORCH_MODULE(AfnoNet);

}  // namespace joulemark::train
