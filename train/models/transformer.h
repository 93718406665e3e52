// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/torch.h>

namespace joulemark::train {

/// Sizes of an encoder; defaults are BERT-base's.
struct TransformerConfig {
    std::int64_t vocabulary = 30'522;
    std::int64_t hidden = 768;
    std::int64_t layers = 12;
    std::int64_t heads = 12;
    std::int64_t intermediate = 3072;
    std::int64_t positions = 512;  ///< longest sequence
    std::int64_t padding = 0;      ///< id whose embedding stays zero
    double dropout = 0.1;
    double attention_dropout = 0.1;
};

/// Where an implementation keeps the parts of a layer in its state dict.
struct LayerNames {
    std::string query, key, value, attention_output, attention_norm, intermediate, output, output_norm;
};

/// Registers `child` under a name with dots, making the modules on the way where they are missing.
void register_at(torch::nn::Module& root, const std::string& path, std::shared_ptr<torch::nn::Module> child);

/// Linear layer and embedding with BERT's initial weights: normal with deviation 0.02, biases and the row
/// `padding` zero.
torch::nn::Linear bert_linear(std::int64_t in, std::int64_t out);
torch::nn::Embedding bert_embedding(std::int64_t rows, std::int64_t width,
                                    std::optional<std::int64_t> padding = {});
torch::nn::LayerNorm bert_norm(std::int64_t width);

/// Encoder layer with the norms behind the residual sums (Vaswani et al. 2017, Devlin et al. 2019).
class TransformerLayerImpl : public torch::nn::Module {
  public:
    /// `drop_attention_output`: dropout between the attention's output layer and its residual sum.
    TransformerLayerImpl(const TransformerConfig& config, const LayerNames& names,
                         bool drop_attention_output);

    /// x [B, L, hidden] to the same; `present` bool [B, 1, 1, L], or undefined when nothing is padding.
    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& present);

  private:
    torch::Tensor attention(const torch::Tensor& x, const torch::Tensor& present);

    std::int64_t heads_;
    double dropout_;
    double attention_dropout_;
    double attention_output_dropout_;
    torch::nn::Linear query_, key_, value_, attention_output_, intermediate_, output_;
    torch::nn::LayerNorm attention_norm_, output_norm_;
};
TORCH_MODULE(TransformerLayer);

}  // namespace joulemark::train
