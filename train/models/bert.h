// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "models/transformer.h"

namespace joulemark::train {

/// What distinguishes the two encoders: where their parts are in the state dict of transformers'
/// BertForMaskedLM and DistilBertForMaskedLM, and two details.
struct BertKind {
    std::string embeddings;  ///< holds word_embeddings, position_embeddings, LayerNorm
    std::string layers;      ///< its children are 0, 1, ...
    LayerNames layer;
    std::string head_dense;
    std::string head_norm;
    std::string head_bias;  ///< of the decoder, whose weight is the word embeddings'
    bool token_types;       ///< adds the embedding of segment 0
    bool drop_attention_output;
};
extern const BertKind bert_kind;
extern const BertKind distilbert_kind;

/// BERT (Devlin et al. 2019) or DistilBERT (Sanh et al. 2019) with the masked-language head. Decoder and word
/// embeddings share one tensor, which the state dict holds once, under the embeddings' name.
class BertImpl : public torch::nn::Module {
  public:
    BertImpl(const BertKind& kind, const TransformerConfig& config);

    /// ids int64 [B, L]; rows int64 [P] of [B L] at which tokens are predicted; present bool [B, L], or
    /// undefined when nothing is padding. Gives logits [P, vocabulary]: the head works on these rows only,
    /// since others add nothing to the loss.
    torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& rows, const torch::Tensor& present);

  private:
    double dropout_;
    torch::nn::Embedding words_, positions_;
    torch::nn::Embedding types_{nullptr};
    torch::nn::LayerNorm embedding_norm_, head_norm_;
    std::vector<TransformerLayer> layers_;
    torch::nn::Linear head_dense_;
    torch::Tensor head_bias_;
};
TORCH_MODULE(Bert);

}  // namespace joulemark::train
