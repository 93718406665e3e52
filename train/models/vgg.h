// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <torch/torch.h>

namespace joulemark::train {

/// VGG16 (Simonyan, Zisserman 2015, configuration D, without batch norm). Parameters and their initial
/// distributions are those of torchvision's vgg16, under the same names.
struct VggConfig {
    std::int64_t width = 64;     ///< channels of the first block; doubled per block up to 8 x width
    std::int64_t hidden = 4096;  ///< units of the two hidden linear layers
    double dropout = 0.5;        ///< behind each of them
    std::int64_t classes = 1000;
};

class VggImpl : public torch::nn::Module {
  public:
    explicit VggImpl(const VggConfig& config);

    /// Images [N, 3, H, W], at least 32 x 32, to logits [N, classes].
    torch::Tensor forward(torch::Tensor x);

  private:
    torch::nn::Sequential features_, classifier_;
};
TORCH_MODULE(Vgg);

}  // namespace joulemark::train
