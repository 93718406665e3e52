// SPDX-License-Identifier: Apache-2.0
#include "models/bert.h"

namespace joulemark::train {

namespace nn = torch::nn;
using torch::Tensor;

namespace {

/// Holds the decoder's bias, which is the only parameter that stands outside linear layers and norms.
class BiasHolder final : public nn::Module {
  public:
    explicit BiasHolder(std::int64_t size) : bias(register_parameter("bias", torch::zeros({size}))) {}
    Tensor bias;
};

}  // namespace

const BertKind bert_kind = {
    .embeddings = "bert.embeddings",
    .layers = "bert.encoder.layer",
    .layer = {.query = "attention.self.query",
              .key = "attention.self.key",
              .value = "attention.self.value",
              .attention_output = "attention.output.dense",
              .attention_norm = "attention.output.LayerNorm",
              .intermediate = "intermediate.dense",
              .output = "output.dense",
              .output_norm = "output.LayerNorm"},
    .head_dense = "cls.predictions.transform.dense",
    .head_norm = "cls.predictions.transform.LayerNorm",
    .head_bias = "cls.predictions",
    .token_types = true,
    .drop_attention_output = true,
};

const BertKind distilbert_kind = {
    .embeddings = "distilbert.embeddings",
    .layers = "distilbert.transformer.layer",
    .layer = {.query = "attention.q_lin",
              .key = "attention.k_lin",
              .value = "attention.v_lin",
              .attention_output = "attention.out_lin",
              .attention_norm = "sa_layer_norm",
              .intermediate = "ffn.lin1",
              .output = "ffn.lin2",
              .output_norm = "output_layer_norm"},
    .head_dense = "vocab_transform",
    .head_norm = "vocab_layer_norm",
    .head_bias = "vocab_projector",
    .token_types = false,
    .drop_attention_output = false,
};

BertImpl::BertImpl(const BertKind& kind, const TransformerConfig& config)
    : dropout_(config.dropout),
      words_(bert_embedding(config.vocabulary, config.hidden, config.padding)),
      positions_(bert_embedding(config.positions, config.hidden)),
      embedding_norm_(bert_norm(config.hidden)),
      head_norm_(bert_norm(config.hidden)),
      head_dense_(bert_linear(config.hidden, config.hidden)) {
    register_at(*this, kind.embeddings + ".word_embeddings", words_.ptr());
    register_at(*this, kind.embeddings + ".position_embeddings", positions_.ptr());
    if (kind.token_types) {
        types_ = bert_embedding(2, config.hidden);
        register_at(*this, kind.embeddings + ".token_type_embeddings", types_.ptr());
    }
    register_at(*this, kind.embeddings + ".LayerNorm", embedding_norm_.ptr());
    for (std::int64_t i = 0; i < config.layers; ++i) {
        layers_.emplace_back(config, kind.layer, kind.drop_attention_output);
        register_at(*this, kind.layers + "." + std::to_string(i), layers_.back().ptr());
    }
    const auto decoder = std::make_shared<BiasHolder>(config.vocabulary);
    register_at(*this, kind.head_bias, decoder);
    head_bias_ = decoder->bias;
    register_at(*this, kind.head_dense, head_dense_.ptr());
    register_at(*this, kind.head_norm, head_norm_.ptr());
}

Tensor BertImpl::forward(const Tensor& ids, const Tensor& rows, const Tensor& present) {
    // Position and segment are the same for every sequence: they are added once before they are spread.
    Tensor places = positions_->weight.slice(0, 0, ids.size(1));  // [L, hidden]
    if (!types_.is_empty()) {
        places = places + types_->weight[0];
    }
    Tensor x = embedding_norm_(words_(ids) + places);  // [B, L, hidden]
    x = torch::dropout(x, dropout_, is_training());
    const Tensor mask = present.defined() ? present.view({ids.size(0), 1, 1, -1}) : Tensor();
    for (auto& layer : layers_) {
        x = layer(x, mask);
    }
    x = x.flatten(0, 1).index_select(0, rows);  // [P, hidden]
    x = head_norm_(torch::gelu(head_dense_(x)));
    return torch::linear(x, words_->weight, head_bias_);
}

}  // namespace joulemark::train
