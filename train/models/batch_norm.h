// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/torch.h>

namespace joulemark::train {

/// Batch normalisation over N, H, W of [N, C, H, W], with PyTorch's names and momentum 0.1.
/// With a process group its training statistics are those of all ranks' samples, forward and backward; so
/// then one rank with a batch and several with its parts compute the same.
class BatchNorm2dImpl : public torch::nn::Module {
  public:
    BatchNorm2dImpl(std::int64_t channels, c10::intrusive_ptr<c10d::ProcessGroup> group,
                    double epsilon = 1e-5);

    torch::Tensor forward(const torch::Tensor& x);

    torch::Tensor weight;               ///< [C]
    torch::Tensor bias;                 ///< [C]
    torch::Tensor running_mean;         ///< [C]
    torch::Tensor running_var;          ///< [C]
    torch::Tensor num_batches_tracked;  ///< int64 []

  private:
    c10::intrusive_ptr<c10d::ProcessGroup> group_;
    double epsilon_;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace joulemark::train
