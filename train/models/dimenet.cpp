// SPDX-License-Identifier: Apache-2.0
#include "models/dimenet.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t dimenet_elements = 95;
constexpr int output_layers = 3;
constexpr std::int64_t most_orders =
    16;  // beyond them spherical_bessel loses fp32's precision at a bond's length
constexpr std::int64_t most_zeros = 100;

/// A layer whose weight is orthogonal, scaled to a variance of 2 / (in + out); bias 0.
nn::Linear orthogonal(std::int64_t in, std::int64_t out, bool bias) {
    nn::Linear layer(nn::LinearOptions(in, out).bias(bias));
    const torch::NoGradGuard no_grad;
    nn::init::orthogonal_(layer->weight);
    layer->weight.mul_((2 / (static_cast<double>(in + out) * layer->weight.var())).sqrt());
    if (bias) {
        nn::init::zeros_(layer->bias);
    }
    return layer;
}

/// Edges into each atom and their triplets, padded: what DimeNet::inputs and its documentation call kj and D.
struct Triplets {
    std::int64_t most = 1;         ///< D
    std::vector<std::int64_t> kj;  ///< [E D]; 0 where there is none
    std::vector<double> angular;   ///< [E D, spherical]; 0 where there is none
};

double cosine_between(const double* at, const double* a, const double* b) {
    double dot = 0;
    double a2 = 0;
    double b2 = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const double u = a[axis] - at[axis];
        const double v = b[axis] - at[axis];
        dot += u * v;
        a2 += u * u;
        b2 += v * v;
    }
    return std::clamp(dot / std::sqrt(a2 * b2), -1.0, 1.0);
}

Triplets find_triplets(const MoleculeGraph& graph, const SphericalBasis& basis) {
    // Edges by the atom that they go to: a list per atom, one after the other.
    const std::vector<std::int64_t> degrees = graph.in_degrees();
    std::vector<std::size_t> first(graph.atoms() + 1, 0);
    for (std::size_t atom = 0; atom < graph.atoms(); ++atom) {
        first[atom + 1] = first[atom] + static_cast<std::size_t>(degrees[atom]);
    }
    std::vector<std::size_t> into(graph.edges());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (std::size_t edge = 0; edge < graph.edges(); ++edge) {
        into[next[static_cast<std::size_t>(graph.target[edge])]++] = edge;
    }
    Triplets triplets;
    for (const std::int64_t source : graph.source) {
        triplets.most = std::max(triplets.most, degrees[static_cast<std::size_t>(source)] - 1);
    }
    const auto orders = static_cast<std::size_t>(basis.orders());
    const auto most = static_cast<std::size_t>(triplets.most);
    triplets.kj.resize(graph.edges() * most);
    triplets.angular.resize(graph.edges() * most * orders);
    const auto position = [&](std::int64_t atom) {
        return &graph.position[3 * static_cast<std::size_t>(atom)];
    };
    for (std::size_t ji = 0; ji < graph.edges(); ++ji) {
        const std::int64_t i = graph.target[ji];
        const std::int64_t j = graph.source[ji];
        std::size_t at = ji * most;
        for (std::size_t entry = first[static_cast<std::size_t>(j)];
             entry < first[static_cast<std::size_t>(j) + 1]; ++entry) {
            const std::int64_t k = graph.source[into[entry]];
            if (k == i) {
                continue;
            }
            triplets.kj[at] = static_cast<std::int64_t>(into[entry]);
            // As the reference has it, at atom i: between its directions to j and to k.
            basis.angular(cosine_between(position(i), position(j), position(k)),
                          &triplets.angular[at * orders]);
            ++at;
        }
    }
    return triplets;
}

}  // namespace

DimeNetConfig DimeNetConfig::from(HyperParameters& settings) {
    DimeNetConfig config;
    config.hidden = settings.integer("hidden", config.hidden, 1);
    config.blocks = settings.integer("blocks", config.blocks, 1, most_layers);
    config.bilinear = settings.integer("bilinear", config.bilinear, 1);
    config.spherical = settings.integer("spherical", config.spherical, 2, most_orders);
    config.radial = settings.integer("radial", config.radial, 1, most_zeros);
    config.cutoff = settings.real("cutoff", config.cutoff, least_cutoff, largest_cutoff);
    return config;
}

DimeNetResidualImpl::DimeNetResidualImpl(std::int64_t hidden)
    : lin1_(register_module("lin1", orthogonal(hidden, hidden, true))),
      lin2_(register_module("lin2", orthogonal(hidden, hidden, true))) {}

Tensor DimeNetResidualImpl::forward(const Tensor& x) {
    return x + torch::silu(lin2_(torch::silu(lin1_(x))));
}

DimeNetInteractionImpl::DimeNetInteractionImpl(const DimeNetConfig& config)
    : lin_rbf_(orthogonal(config.radial, config.hidden, false)),
      lin_sbf_(orthogonal(config.spherical * config.radial, config.bilinear, false)),
      lin_kj_(orthogonal(config.hidden, config.hidden, true)),
      lin_ji_(orthogonal(config.hidden, config.hidden, true)),
      lin_(orthogonal(config.hidden, config.hidden, true)),
      before_skip_(config.hidden),
      after_skip0_(config.hidden),
      after_skip1_(config.hidden) {
    w_ = register_parameter("W", torch::randn({config.hidden, config.bilinear, config.hidden}) * 2 /
                                     static_cast<double>(config.hidden));
    register_module("lin_rbf", lin_rbf_);
    register_module("lin_sbf", lin_sbf_);
    register_module("lin_kj", lin_kj_);
    register_module("lin_ji", lin_ji_);
    register_module("layers_before_skip", std::make_shared<nn::Module>())->register_module("0", before_skip_);
    register_module("lin", lin_);
    const auto after = register_module("layers_after_skip", std::make_shared<nn::Module>());
    after->register_module("0", after_skip0_);
    after->register_module("1", after_skip1_);
}

Tensor DimeNetInteractionImpl::forward(const Tensor& x, const Tensor& rbf, const Tensor& sbf,
                                       const Tensor& kj) {
    const std::int64_t edges = x.size(0);
    const std::int64_t hidden = w_.size(0);
    const Tensor from_ji = torch::silu(lin_ji_(x));
    const Tensor from_kj = torch::silu(lin_kj_(x)) * lin_rbf_(rbf);
    // Sum over the triplets w of an edge, over j and l, of sbf[w, j] x[kj(w), l] W[i, j, l]: the sum over w
    // first, as a batch of small products, so that W meets edges and not their many triplets.
    const Tensor waves = lin_sbf_(sbf).view({edges, -1, w_.size(1)});               // [E, D, bilinear]
    const Tensor messages = from_kj.index_select(0, kj).view({edges, -1, hidden});  // [E, D, hidden]
    const Tensor summed = torch::bmm(waves.transpose(1, 2), messages).view({edges, -1});
    Tensor h = from_ji + torch::linear(summed, w_.view({hidden, -1}));
    h = before_skip_(h);
    h = torch::silu(lin_(h)) + x;
    return after_skip1_(after_skip0_(h));
}

DimeNetOutputImpl::DimeNetOutputImpl(const DimeNetConfig& config)
    : lin_rbf_(orthogonal(config.radial, config.hidden, false)),
      lin_(nn::LinearOptions(config.hidden, 1).bias(false)) {
    register_module("lin_rbf", lin_rbf_);
    const auto lins = register_module("lins", std::make_shared<nn::Module>());
    for (int layer = 0; layer < output_layers; ++layer) {
        lins_.push_back(orthogonal(config.hidden, config.hidden, true));
        lins->register_module(std::to_string(layer), lins_.back());
    }
    register_module("lin", lin_);
    nn::init::zeros_(lin_->weight);
}

Tensor DimeNetOutputImpl::forward(const Tensor& x, const Tensor& rbf, const Tensor& target,
                                  std::int64_t atoms) {
    Tensor y = sum_rows(lin_rbf_(rbf) * x, target, atoms);
    for (auto& layer : lins_) {
        y = torch::silu(layer(y));
    }
    return lin_(y);
}

DimeNet::DimeNet(const DimeNetConfig& config)
    : config_(config),
      basis_(config.spherical, config.radial),
      embedding_(dimenet_elements, config.hidden),
      lin_rbf_(config.radial, config.hidden),
      lin_(3 * config.hidden, config.hidden) {
    frequencies_ = register_module("rbf", std::make_shared<nn::Module>())
                       ->register_parameter(
                           "freq", torch::arange(1, config.radial + 1, torch::kFloat32) * std::numbers::pi);
    const auto embedding = register_module("emb", std::make_shared<nn::Module>());
    embedding->register_module("emb", embedding_);
    embedding->register_module("lin_rbf", lin_rbf_);
    embedding->register_module("lin", lin_);
    nn::init::uniform_(embedding_->weight, -std::numbers::sqrt3, std::numbers::sqrt3);
    register_module("output_blocks", outputs_);
    register_module("interaction_blocks", interactions_);
    outputs_->push_back(DimeNetOutput(config));
    for (std::int64_t block = 0; block < config.blocks; ++block) {
        outputs_->push_back(DimeNetOutput(config));
        interactions_->push_back(DimeNetInteraction(config));
    }
}

std::vector<Tensor> DimeNet::inputs(const MoleculeGraph& graph, const HostTensors& make) const {
    const auto basis_size = static_cast<std::size_t>(basis_.orders() * basis_.zeros());
    std::vector<double> scaled;
    std::vector<double> envelope;
    std::vector<double> radial(graph.edges() * basis_size);
    double* row = radial.data();
    for (const double distance : graph.distance) {
        scaled.push_back(distance / config_.cutoff);
        envelope.push_back(smooth_inverse(scaled.back()));
        basis_.radial(scaled.back(), row);
        std::for_each(row, row + basis_size, [&](double& value) { value *= envelope.back(); });
        row += basis_size;
    }
    const Triplets triplets = find_triplets(graph, basis_);
    return {make.of(graph.z),
            make.of(graph.molecule),
            make.of(graph.source),
            make.of(graph.target),
            make.of(scaled).unsqueeze(1),
            make.of(envelope).unsqueeze(1),
            make.of(radial).view({-1, basis_.orders() * basis_.zeros()}),
            make.of(triplets.kj),
            make.of(triplets.angular).view({-1, basis_.orders()})};
}

Tensor DimeNet::forward(const std::vector<Tensor>& inputs, std::int64_t molecules) {
    const Tensor& z = inputs[0];
    const Tensor& source = inputs[2];
    const Tensor& target = inputs[3];
    const Tensor& kj = inputs[7];
    const Tensor rbf = inputs[5] * torch::sin(frequencies_ * inputs[4]);  // [E, radial]
    const Tensor sbf =
        (inputs[6].index_select(0, kj).view({-1, config_.spherical, config_.radial}) * inputs[8].unsqueeze(2))
            .flatten(1);  // [E D, spherical radial]

    const Tensor atoms = embedding_(z);
    Tensor x = torch::silu(lin_(torch::cat(
        {atoms.index_select(0, target), atoms.index_select(0, source), torch::silu(lin_rbf_(rbf))}, 1)));
    Tensor sum = outputs_[0]->as<DimeNetOutputImpl>()->forward(x, rbf, target, z.size(0));
    for (std::size_t block = 0; block < interactions_->size(); ++block) {
        x = interactions_[block]->as<DimeNetInteractionImpl>()->forward(x, rbf, sbf, kj);
        sum = sum + outputs_[block + 1]->as<DimeNetOutputImpl>()->forward(x, rbf, target, z.size(0));
    }
    return sum_rows(sum, inputs[1], molecules).squeeze(1);
}

double DimeNet::flops(const MoleculeStatistics& s) const {
    const auto h = static_cast<double>(config_.hidden);
    const auto b = static_cast<double>(config_.bilinear);
    const auto r = static_cast<double>(config_.radial);
    const double waves = static_cast<double>(config_.spherical) * r;
    // Two messages in, the skip's layer, three residual layers of two; the bilinear product with the edges.
    const double edge = 2 * (9 * h * h + h * b * h + r * h);
    const double triplet = 2 * (waves * b + b * h);
    const double output = s.edges * (2 * r * h + h) + s.atoms * 2 * (output_layers * h * h + h);
    const double blocks = static_cast<double>(config_.blocks);
    return 3 * (s.edges * 2 * (r * h + 3 * h * h) + blocks * (s.edges * edge + s.triplets * triplet) +
                (blocks + 1) * output);
}

}  // namespace joulemark::train
