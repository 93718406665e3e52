// SPDX-License-Identifier: Apache-2.0
#include "models/transformer.h"

#include <utility>

namespace joulemark::train {

namespace nn = torch::nn;
using torch::Tensor;

namespace {

constexpr double initial_deviation = 0.02;
constexpr double norm_epsilon = 1e-12;

/// A level of the names' hierarchy, with nothing of its own.
class Level final : public nn::Module {};

}  // namespace

void register_at(nn::Module& root, const std::string& path, std::shared_ptr<nn::Module> child) {
    const auto dot = path.find('.');
    if (dot == std::string::npos) {
        root.register_module(path, std::move(child));
        return;
    }
    const std::string level = path.substr(0, dot);
    const auto children = root.named_children();
    const auto* existing = children.find(level);
    nn::Module& next =
        existing != nullptr ? **existing : *root.register_module(level, std::make_shared<Level>());
    register_at(next, path.substr(dot + 1), std::move(child));
}

nn::Linear bert_linear(std::int64_t in, std::int64_t out) {
    nn::Linear linear(in, out);
    nn::init::normal_(linear->weight, 0, initial_deviation);
    nn::init::zeros_(linear->bias);
    return linear;
}

nn::Embedding bert_embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding) {
    nn::EmbeddingOptions options(rows, width);
    options.padding_idx(padding);
    nn::Embedding embedding(options);
    const torch::NoGradGuard no_grad;
    embedding->weight.normal_(0, initial_deviation);
    if (padding) {
        embedding->weight[*padding].zero_();
    }
    return embedding;
}

nn::LayerNorm bert_norm(std::int64_t width) {
    return nn::LayerNorm(nn::LayerNormOptions({width}).eps(norm_epsilon));
}

TransformerLayerImpl::TransformerLayerImpl(const TransformerConfig& config, const LayerNames& names,
                                           bool drop_attention_output)
    : heads_(config.heads),
      dropout_(config.dropout),
      attention_dropout_(config.attention_dropout),
      attention_output_dropout_(drop_attention_output ? config.dropout : 0),
      query_(bert_linear(config.hidden, config.hidden)),
      key_(bert_linear(config.hidden, config.hidden)),
      value_(bert_linear(config.hidden, config.hidden)),
      attention_output_(bert_linear(config.hidden, config.hidden)),
      intermediate_(bert_linear(config.hidden, config.intermediate)),
      output_(bert_linear(config.intermediate, config.hidden)),
      attention_norm_(bert_norm(config.hidden)),
      output_norm_(bert_norm(config.hidden)) {
    register_at(*this, names.query, query_.ptr());
    register_at(*this, names.key, key_.ptr());
    register_at(*this, names.value, value_.ptr());
    register_at(*this, names.attention_output, attention_output_.ptr());
    register_at(*this, names.attention_norm, attention_norm_.ptr());
    register_at(*this, names.intermediate, intermediate_.ptr());
    register_at(*this, names.output, output_.ptr());
    register_at(*this, names.output_norm, output_norm_.ptr());
}

Tensor TransformerLayerImpl::attention(const Tensor& x, const Tensor& present) {
    // One product instead of three: under autocast `x` is rounded once, not three times.
    const Tensor weight = torch::cat({query_->weight, key_->weight, value_->weight});
    const Tensor bias = torch::cat({query_->bias, key_->bias, value_->bias});
    const Tensor projected =
        torch::linear(x, weight, bias).unflatten(-1, {3, heads_, -1});  // [B, L, 3, h, d]
    const auto parts = projected.unbind(2);
    const auto by_head = [&](std::size_t part) { return parts[part].transpose(1, 2); };  // [B, h, L, d]
    const auto mask = present.defined() ? std::optional(present) : std::nullopt;
    const Tensor mixed = at::scaled_dot_product_attention(by_head(0), by_head(1), by_head(2), mask,
                                                          is_training() ? attention_dropout_ : 0.0);
    return attention_output_(mixed.transpose(1, 2).flatten(2));
}

Tensor TransformerLayerImpl::forward(const Tensor& x, const Tensor& present) {
    const Tensor attended = torch::dropout(attention(x, present), attention_output_dropout_, is_training());
    const Tensor y = attention_norm_(x + attended);
    const Tensor changed = torch::dropout(output_(torch::gelu(intermediate_(y))), dropout_, is_training());
    return output_norm_(y + changed);
}

}  // namespace joulemark::train
