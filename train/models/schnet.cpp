// SPDX-License-Identifier: Apache-2.0
#include "models/schnet.h"

#include <cmath>
#include <numbers>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t schnet_elements = 100;

nn::Linear xavier_linear(std::int64_t in, std::int64_t out, bool bias = true) {
    nn::Linear layer(nn::LinearOptions(in, out).bias(bias));
    nn::init::xavier_uniform_(layer->weight);
    if (bias) {
        nn::init::zeros_(layer->bias);
    }
    return layer;
}

/// Zero at zero. The reference's ln 2 is in single precision.
Tensor shifted_softplus(const Tensor& x) {
    return torch::softplus(x) - static_cast<double>(std::numbers::ln2_v<float>);
}

}  // namespace

SchNetConfig SchNetConfig::from(HyperParameters& settings) {
    SchNetConfig config;
    config.hidden = settings.integer("hidden", config.hidden, 2);
    config.filters = settings.integer("filters", config.filters, 1);
    config.interactions = settings.integer("interactions", config.interactions, 1, most_layers);
    config.gaussians = settings.integer("gaussians", config.gaussians, 2);
    config.cutoff = settings.real("cutoff", config.cutoff, least_cutoff, largest_cutoff);
    return config;
}

SchNetInteractionImpl::SchNetInteractionImpl(const SchNetConfig& config)
    : filter1_(xavier_linear(config.gaussians, config.filters)),
      filter2_(xavier_linear(config.filters, config.filters)),
      lin1_(xavier_linear(config.hidden, config.filters, false)),
      lin2_(xavier_linear(config.filters, config.hidden)),
      lin_(xavier_linear(config.hidden, config.hidden)) {
    const auto mlp = register_module("mlp", std::make_shared<nn::Module>());
    mlp->register_module("0", filter1_);
    mlp->register_module("2", filter2_);
    const auto conv = register_module("conv", std::make_shared<nn::Module>());
    conv->register_module("lin1", lin1_);
    conv->register_module("lin2", lin2_);
    register_module("lin", lin_);
}

Tensor SchNetInteractionImpl::forward(const Tensor& x, const Tensor& basis, const Tensor& decay,
                                      const Tensor& source, const Tensor& target) {
    const Tensor filter = filter2_(shifted_softplus(filter1_(basis))) * decay;  // [E, filters]
    const Tensor messages = lin1_(x).index_select(0, source) * filter;
    return lin_(shifted_softplus(lin2_(sum_rows(messages, target, x.size(0)))));
}

SchNet::SchNet(const SchNetConfig& config)
    : config_(config),
      embedding_(nn::EmbeddingOptions(schnet_elements, config.hidden).padding_idx(0)),
      offset_(torch::linspace(0, config.cutoff, config.gaussians)),
      coefficient_(-0.5 / std::pow((offset_[1] - offset_[0]).item<double>(), 2)),
      lin1_(xavier_linear(config.hidden, config.hidden / 2)),
      lin2_(xavier_linear(config.hidden / 2, 1)) {
    register_module("embedding", embedding_);
    register_module("distance_expansion", std::make_shared<nn::Module>())->register_buffer("offset", offset_);
    register_module("interactions", interactions_);
    for (std::int64_t i = 0; i < config.interactions; ++i) {
        interactions_->push_back(SchNetInteraction(config));
    }
    register_module("lin1", lin1_);
    register_module("lin2", lin2_);
}

std::vector<Tensor> SchNet::inputs(const MoleculeGraph& graph, const HostTensors& make) const {
    return {make.of(graph.z), make.of(graph.molecule), make.of(graph.source), make.of(graph.target),
            make.of(graph.distance).unsqueeze(1)};
}

Tensor SchNet::forward(const std::vector<Tensor>& inputs, std::int64_t molecules) {
    const Tensor& source = inputs[2];
    const Tensor& target = inputs[3];
    const Tensor& distance = inputs[4];
    const Tensor basis = torch::exp(coefficient_ * (distance - offset_).square());
    const Tensor decay = 0.5 * (torch::cos(distance * (std::numbers::pi / config_.cutoff)) + 1);
    Tensor x = embedding_(inputs[0]);
    for (const auto& interaction : *interactions_) {
        x = x + interaction->as<SchNetInteractionImpl>()->forward(x, basis, decay, source, target);
    }
    x = lin2_(shifted_softplus(lin1_(x)));  // [N, 1]
    return sum_rows(x, inputs[1], molecules).squeeze(1);
}

double SchNet::flops(const MoleculeStatistics& s) const {
    const auto h = static_cast<double>(config_.hidden);
    const auto f = static_cast<double>(config_.filters);
    const auto g = static_cast<double>(config_.gaussians);
    const double edge = 2 * (g * f + f * f) + 2 * f;  // filter network; message and sum
    const double atom = 2 * (h * f + f * h + h * h);
    const double readout = 2 * (h * h / 2 + h / 2);
    return 3 * (static_cast<double>(config_.interactions) * (s.edges * edge + s.atoms * atom) +
                s.atoms * readout);
}

}  // namespace joulemark::train
