// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "models/batch_norm.h"

namespace joulemark::train {

/// Bottleneck residual network (He et al. 2016, with the stride in the 3x3 convolution as torchvision has
/// it). Parameters, buffers and their initial distributions are those of torchvision's resnet50, under the
/// same names.
struct ResNetConfig {
    std::vector<std::int64_t> blocks = {3, 4, 6, 3};  ///< bottlenecks of layer1 .. layer4
    std::int64_t width = 64;                          ///< channels behind conv1; layer i has width * 2^(i-1)
    std::int64_t classes = 1000;
    bool zero_init_residual =
        false;  ///< the last norm of a block starts at 0: every block starts as the identity
    c10::intrusive_ptr<c10d::ProcessGroup> sync_group = nullptr;  ///< batch-norm statistics over these ranks
};

class BottleneckImpl : public torch::nn::Module {
  public:
    static constexpr std::int64_t expansion = 4;

    /// [N, in, H, W] to [N, 4 width, H/stride, W/stride].
    BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride, const ResNetConfig& config);
    torch::Tensor forward(const torch::Tensor& x);

  private:
    torch::nn::Conv2d conv1_, conv2_, conv3_;
    BatchNorm2d bn1_, bn2_, bn3_;
    torch::nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(Bottleneck);

class ResNetImpl : public torch::nn::Module {
  public:
    explicit ResNetImpl(const ResNetConfig& config);

    /// Images [N, 3, H, W] to logits [N, classes].
    torch::Tensor forward(torch::Tensor x);

  private:
    torch::nn::Conv2d conv1_;
    BatchNorm2d bn1_;
    std::array<torch::nn::Sequential, 4> layers_;
    torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace joulemark::train
