// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "models/batch_norm.h"

namespace joulemark::train {

/// U-Net (Ronneberger et al. 2015) with padded convolutions and batch norm. The reference definition is
/// tests/reference/unet.py, whose names and initial distributions (PyTorch's) it has.
struct UNetConfig {
    std::int64_t inputs = 13;   ///< channels: frames seen
    std::int64_t outputs = 12;  ///< frames forecast
    std::int64_t width = 32;    ///< channels at full resolution; doubled per level
    std::int64_t depth = 4;     ///< times the image is halved: its sides must be multiples of 2^depth
    c10::intrusive_ptr<c10d::ProcessGroup> sync_group = nullptr;  ///< batch-norm statistics over these ranks
};

/// Twice: 3 x 3 convolution, batch norm, ReLU. Keeps height and width.
class DoubleConvImpl : public torch::nn::Module {
  public:
    DoubleConvImpl(std::int64_t in, std::int64_t out, const UNetConfig& config);
    torch::Tensor forward(const torch::Tensor& x);

  private:
    torch::nn::Conv2d conv1_, conv2_;
    BatchNorm2d norm1_, norm2_;
};
TORCH_MODULE(DoubleConv);

class UNetImpl : public torch::nn::Module {
  public:
    explicit UNetImpl(const UNetConfig& config);

    /// [N, inputs, H, W] to [N, outputs, H, W].
    torch::Tensor forward(torch::Tensor x);

  private:
    std::vector<DoubleConv> down_, merge_;
    std::vector<torch::nn::ConvTranspose2d> up_;
    torch::nn::Conv2d head_{nullptr};
};
TORCH_MODULE(UNet);

}  // namespace joulemark::train
