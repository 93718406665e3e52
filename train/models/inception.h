// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "models/batch_norm.h"

namespace joulemark::train {

/// Inception-v3 (Szegedy et al. 2016). Parameters, buffers and their initial distributions are those of
/// torchvision's inception_v3, under the same names.
struct InceptionConfig {
    std::int64_t narrow = 1;  ///< all channel counts are divided by this: 1, 2, 4, 8, 16 or 32
    bool aux_logits = true;   ///< with the auxiliary head, which training adds to the loss
    double dropout = 0.5;     ///< in front of the last layer
    bool transform_input =
        false;  ///< images scaled to -1..1 first, as torchvision's published weights want it
    std::int64_t classes = 1000;
    c10::intrusive_ptr<c10d::ProcessGroup> sync_group = nullptr;  ///< batch-norm statistics over these ranks

    std::int64_t channels(std::int64_t full) const { return std::max<std::int64_t>(1, full / narrow); }
};

/// A convolution without bias, batch norm (epsilon 1e-3), ReLU.
class ConvNormImpl : public torch::nn::Module {
  public:
    struct Shape {
        std::int64_t height = 1;
        std::int64_t width = 1;
        std::int64_t stride = 1;
        bool pad = true;  ///< keeps the size at stride 1
    };
    ConvNormImpl(std::int64_t in, std::int64_t out, const Shape& shape, const InceptionConfig& config);
    torch::Tensor forward(const torch::Tensor& x);

  private:
    torch::nn::Conv2d conv_{nullptr};
    BatchNorm2d bn_;
};
TORCH_MODULE(ConvNorm);

/// Branches side by side, each a chain of convolutions, their outputs concatenated over channels.
class InceptionBlockImpl : public torch::nn::Module {
  public:
    enum class Start { input, average_pool, max_pool };
    struct Layer {
        const char* name;
        std::int64_t out;  ///< before it is divided by `narrow`
        ConvNormImpl::Shape shape;
    };
    struct Branch {
        Start start = Start::input;
        std::vector<Layer> chain;
        bool forked = false;  ///< the last two layers both work on what comes before them
    };
    InceptionBlockImpl(std::int64_t in, const std::vector<Branch>& branches, const InceptionConfig& config);

    torch::Tensor forward(const torch::Tensor& x);
    std::int64_t out_channels() const { return out_channels_; }

  private:
    struct Path {
        Start start;
        std::vector<ConvNorm> chain;
        bool forked;
    };
    std::vector<Path> paths_;
    std::int64_t out_channels_ = 0;
};
TORCH_MODULE(InceptionBlock);

/// Logits [N, classes] from the feature map in the middle of the network, at least 17 x 17.
class InceptionAuxImpl : public torch::nn::Module {
  public:
    InceptionAuxImpl(std::int64_t in, const InceptionConfig& config);
    torch::Tensor forward(torch::Tensor x);

  private:
    ConvNorm conv0_, conv1_;
    torch::nn::Linear fc_;
};
TORCH_MODULE(InceptionAux);

class InceptionImpl : public torch::nn::Module {
  public:
    /// Of images' sides, with the auxiliary head and without.
    static constexpr std::int64_t smallest_image = 299;
    static constexpr std::int64_t smallest_image_without_head = 75;

    struct Logits {
        torch::Tensor main;       ///< [N, classes]
        torch::Tensor auxiliary;  ///< the same, or undefined
    };
    explicit InceptionImpl(const InceptionConfig& config);

    /// Images [N, 3, H, W]. The auxiliary head works while training only, or always for `with_head`.
    Logits forward(torch::Tensor x, bool with_head);
    Logits forward(const torch::Tensor& x) { return forward(x, is_training()); }

  private:
    bool transform_input_;
    ConvNorm conv_1a_, conv_2a_, conv_2b_, conv_3b_, conv_4a_;
    std::vector<InceptionBlock> before_head_, behind_head_;
    InceptionAux head_{nullptr};
    torch::nn::Dropout dropout_;
    torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(Inception);

}  // namespace joulemark::train
