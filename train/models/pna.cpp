// SPDX-License-Identifier: Apache-2.0
#include "models/pna.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t pna_elements = 100;
constexpr std::int64_t aggregators = 4;
constexpr std::int64_t scalers = 3;
constexpr double least_variance = 1e-5;

}  // namespace

PnaConfig PnaConfig::from(HyperParameters& settings) {
    PnaConfig config;
    config.hidden = settings.integer("hidden", config.hidden, 1);
    config.layers = settings.integer("layers", config.layers, 1, most_layers);
    config.towers = settings.integer("towers", config.towers, 1, most_layers);
    config.gaussians = settings.integer("gaussians", config.gaussians, 2);
    config.cutoff = settings.real("cutoff", config.cutoff, least_cutoff, largest_cutoff);
    if (config.hidden % config.towers != 0) {
        throw bad_input("--set hidden={} is not a multiple of towers={}", config.hidden, config.towers);
    }
    return config;
}

PnaConvImpl::PnaConvImpl(const PnaConfig& config)
    : towers_(config.towers),
      edge_encoder_(config.gaussians, config.hidden),
      lin_(config.hidden, config.hidden) {
    // Buffers of PyTorch Geometric's state, of which the linear one has no part in these scalers.
    const auto degrees = register_module("aggr_module", std::make_shared<nn::Module>());
    degrees->register_buffer("avg_deg_lin", torch::full({1}, config.in_degree));
    average_log_degree_ = degrees->register_buffer("avg_deg_log", torch::full({1}, config.log_degree_plus_1));
    register_module("edge_encoder", edge_encoder_);
    const auto pre = register_module("pre_nns", std::make_shared<nn::Module>());
    const auto post = register_module("post_nns", std::make_shared<nn::Module>());
    const std::int64_t hidden = config.hidden;
    for (std::int64_t tower = 0; tower < towers_; ++tower) {
        pre_.emplace_back(3 * hidden, hidden);
        post_.emplace_back((aggregators * scalers + 1) * hidden, hidden / towers_);
        const std::string name = std::to_string(tower);
        pre->register_module(name, std::make_shared<nn::Module>())->register_module("0", pre_.back());
        post->register_module(name, std::make_shared<nn::Module>())->register_module("0", post_.back());
    }
    register_module("lin", lin_);
}

/// Mean, minimum, maximum and standard deviation of the messages [E, towers, hidden] to each atom:
/// [N, towers, 4 hidden].
Tensor PnaConvImpl::aggregate(const Tensor& messages, const Tensor& target, std::int64_t atoms,
                              const Tensor& inverse_degree) const {
    const Tensor share = inverse_degree.squeeze(3);
    const Tensor mean = sum_rows(messages, target, atoms) * share;
    // Not E[x^2] - E[x]^2, as the reference has it: in single precision little would be left of a small
    // variance.
    const Tensor variance =
        sum_rows((messages - mean.index_select(0, target)).square(), target, atoms) * share;
    const Tensor index = target.view({-1, 1, 1}).expand_as(messages);
    const Tensor none = torch::zeros({atoms, messages.size(1), messages.size(2)}, messages.options());
    const Tensor least = none.scatter_reduce(0, index, messages, "amin", /*include_self=*/false);
    const Tensor most = none.scatter_reduce(0, index, messages, "amax", /*include_self=*/false);
    Tensor sd = variance.clamp_min(least_variance).sqrt();
    sd = sd.masked_fill(sd.detach() <= std::sqrt(least_variance), 0);
    return torch::cat({mean, least, most, sd}, 2);
}

Tensor PnaConvImpl::forward(const Tensor& x, const Tensor& basis, const Tensor& source, const Tensor& target,
                            const Tensor& inverse_degree, const Tensor& log_degree,
                            const Tensor& least_log_degree) {
    const std::int64_t atoms = x.size(0);
    const std::int64_t hidden = x.size(1);
    // All towers see the same: one product with their stacked weights.
    std::vector<Tensor> weights;
    std::vector<Tensor> biases;
    for (auto& tower : pre_) {
        weights.push_back(tower->weight);
        biases.push_back(tower->bias);
    }
    const Tensor edges = torch::cat(
        {x.index_select(0, target), x.index_select(0, source), edge_encoder_(basis)}, 1);  // [E, 3 hidden]
    const Tensor messages = at_least_float32(torch::linear(edges, torch::cat(weights), torch::cat(biases)))
                                .view({-1, towers_, hidden});

    const Tensor aggregated = aggregate(messages, target, atoms, inverse_degree);  // [N, towers, 4 hidden]
    const Tensor factors = torch::cat({torch::ones_like(log_degree), log_degree / average_log_degree_,
                                       average_log_degree_ / least_log_degree},
                                      2);                                  // [N, 1, 3, 1]
    const Tensor scaled = (aggregated.unsqueeze(2) * factors).flatten(2);  // [N, towers, 12 hidden]
    const Tensor features = torch::cat({x.unsqueeze(1).expand({-1, towers_, -1}), scaled}, 2);

    weights.clear();
    biases.clear();
    for (auto& tower : post_) {
        weights.push_back(tower->weight);
        biases.push_back(tower->bias);
    }
    const Tensor out = torch::baddbmm(torch::stack(biases).unsqueeze(1), features.transpose(0, 1),
                                      torch::stack(weights).transpose(1, 2));  // [towers, N, hidden / towers]
    return lin_(out.transpose(0, 1).flatten(1));
}

Pna::Pna(const PnaConfig& config)
    : config_(config),
      node_emb_(pna_elements, config.hidden),
      offset_(torch::linspace(0, config.cutoff, config.gaussians)),
      coefficient_(-0.5 / std::pow((offset_[1] - offset_[0]).item<double>(), 2)),
      mlp0_(config.hidden, 50),
      mlp2_(50, 25),
      mlp4_(25, 1) {
    register_module("node_emb", node_emb_);
    register_module("edge_emb", std::make_shared<nn::Module>())->register_buffer("offset", offset_);
    register_module("convs", convs_);
    const auto norms = register_module("batch_norms", std::make_shared<nn::Module>());
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        convs_->push_back(PnaConv(config));
        norms_.emplace_back(config.hidden);
        norms->register_module(std::to_string(layer), std::make_shared<nn::Module>())
            ->register_module("module", norms_.back());
    }
    const auto mlp = register_module("mlp", std::make_shared<nn::Module>());
    mlp->register_module("0", mlp0_);
    mlp->register_module("2", mlp2_);
    mlp->register_module("4", mlp4_);
}

std::vector<Tensor> Pna::inputs(const MoleculeGraph& graph, const HostTensors& make) const {
    std::vector<double> inverse;
    std::vector<double> logs;
    std::vector<double> least_logs;
    for (const std::int64_t degree : graph.in_degrees()) {
        const auto d = static_cast<double>(degree);
        inverse.push_back(1 / std::max(d, 1.0));
        logs.push_back(std::log(d + 1));
        least_logs.push_back(std::log(std::max(d, 1.0) + 1));
    }
    const auto per_atom = [&](const std::vector<double>& values) {
        return make.of(values).view({-1, 1, 1, 1});
    };
    return {make.of(graph.z),
            make.of(graph.molecule),
            make.of(graph.source),
            make.of(graph.target),
            make.of(graph.distance).unsqueeze(1),
            per_atom(inverse),
            per_atom(logs),
            per_atom(least_logs)};
}

Tensor Pna::forward(const std::vector<Tensor>& inputs, std::int64_t molecules) {
    const Tensor basis = torch::exp(coefficient_ * (inputs[4] - offset_).square());
    Tensor x = node_emb_(inputs[0]);
    for (std::size_t layer = 0; layer < norms_.size(); ++layer) {
        auto* conv = convs_[layer]->as<PnaConvImpl>();
        x = torch::relu(
            norms_[layer](conv->forward(x, basis, inputs[2], inputs[3], inputs[5], inputs[6], inputs[7])));
    }
    x = sum_rows(x, inputs[1], molecules);
    return mlp4_(torch::relu(mlp2_(torch::relu(mlp0_(x))))).squeeze(1);
}

double Pna::flops(const MoleculeStatistics& s) const {
    const auto h = static_cast<double>(config_.hidden);
    const auto t = static_cast<double>(config_.towers);
    const double edge = 2 * (static_cast<double>(config_.gaussians) * h + 3 * h * h * t) + 5 * h * t;
    const double atom = 2 * ((aggregators * scalers + 1) * h * h + h * h);
    return 3 * (static_cast<double>(config_.layers) * (s.edges * edge + s.atoms * atom) +
                2 * (h * 50 + 50 * 25 + 25));
}

}  // namespace joulemark::train
