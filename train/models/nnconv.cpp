// SPDX-License-Identifier: Apache-2.0
#include "models/nnconv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace joulemark::train {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

/// Covalent radii of single bonds in Angstrom (Pyykko and Atsumi 2009), by atomic number.
double covalent_radius(std::int64_t z) {
    static constexpr std::array<double, 10> radii = {0, 0.32, 0.46, 1.33, 1.02, 0.85, 0.75, 0.71, 0.63, 0.64};
    return z < static_cast<std::int64_t>(radii.size()) ? radii[static_cast<std::size_t>(z)] : 0;
}

/// Files without bonds: classes of a pair by its distance over the sum of both radii. Single, double, triple
/// and conjugated bonds, in this order; none beyond.
enum BondClass : std::size_t { single_bond, double_bond, triple_bond, conjugated_bond, no_bond };
BondClass bond_class(std::int64_t a, std::int64_t b, double distance) {
    const double ratio = distance / (covalent_radius(a) + covalent_radius(b));
    return ratio < 0.84    ? triple_bond
           : ratio < 0.905 ? double_bond
           : ratio < 0.965 ? conjugated_bond
           : ratio < 1.25  ? single_bond
                           : no_bond;
}

struct Features {
    std::vector<double> atoms, edges;
};

/// In the layout of PyTorch Geometric's QM9. Atoms: H, C, N, O, F; atomic number; in a conjugated bond; 2, 3,
/// 4 neighbours (where that one has sp, sp2, sp3); bonded hydrogens. Edges: the four classes of bonds;
/// distance.
Features features_of(const MoleculeGraph& graph) {
    constexpr auto per_atom = static_cast<std::size_t>(NnConv::atom_features);
    constexpr auto per_edge = static_cast<std::size_t>(NnConv::edge_features);
    static constexpr std::array<std::int64_t, 5> elements = {1, 6, 7, 8, 9};
    Features features;
    features.atoms.resize(graph.atoms() * per_atom);
    features.edges.resize(graph.edges() * per_edge);
    std::vector<int> neighbours(graph.atoms());
    for (std::size_t edge = 0; edge < graph.edges(); ++edge) {
        const auto source = static_cast<std::size_t>(graph.source[edge]);
        const auto target = static_cast<std::size_t>(graph.target[edge]);
        double* values = &features.edges[edge * per_edge];
        values[4] = graph.distance[edge];
        const BondClass kind = bond_class(graph.z[source], graph.z[target], graph.distance[edge]);
        if (kind == no_bond) {
            continue;
        }
        values[kind] = 1;
        double* atom = &features.atoms[target * per_atom];
        ++neighbours[target];
        atom[6] = kind == conjugated_bond ? 1 : atom[6];
        atom[10] += graph.z[source] == 1 ? 1 : 0;
    }
    for (std::size_t i = 0; i < graph.atoms(); ++i) {
        double* atom = &features.atoms[i * per_atom];
        if (const auto at = std::ranges::find(elements, graph.z[i]); at != elements.end()) {
            atom[at - elements.begin()] = 1;
        }
        atom[5] = static_cast<double>(graph.z[i]);
        if (neighbours[i] >= 2 && neighbours[i] <= 4) {
            atom[5 + neighbours[i]] = 1;
        }
    }
    return features;
}

}  // namespace

NnConvConfig NnConvConfig::from(HyperParameters& settings) {
    NnConvConfig config;
    config.dim = settings.integer("dim", config.dim, 1);
    config.steps = settings.integer("steps", config.steps, 1, most_layers);
    config.set2set_steps = settings.integer("set2set_steps", config.set2set_steps, 1, most_layers);
    config.edge_hidden = settings.integer("edge_hidden", config.edge_hidden, 1);
    return config;
}

RecurrentCellImpl::RecurrentCellImpl(std::int64_t in, std::int64_t hidden, std::int64_t gates) {
    const double bound = 1 / std::sqrt(static_cast<double>(hidden));
    const auto uniform = [&](at::IntArrayRef shape) { return torch::empty(shape).uniform_(-bound, bound); };
    weight_ih = register_parameter("weight_ih_l0", uniform({gates * hidden, in}));
    weight_hh = register_parameter("weight_hh_l0", uniform({gates * hidden, hidden}));
    bias_ih = register_parameter("bias_ih_l0", uniform({gates * hidden}));
    bias_hh = register_parameter("bias_hh_l0", uniform({gates * hidden}));
}

NnConv::NnConv(const NnConvConfig& config)
    : config_(config),
      lin0_(atom_features, config.dim),
      edge1_(edge_features, config.edge_hidden),
      edge2_(config.edge_hidden, config.dim * config.dim),
      root_(nn::LinearOptions(config.dim, config.dim).bias(false)),
      gru_(config.dim, config.dim, 3),
      lstm_(2 * config.dim, config.dim, 4),
      lin1_(2 * config.dim, config.dim),
      lin2_(config.dim, 1) {
    register_module("lin0", lin0_);
    const auto conv = register_module("conv", std::make_shared<nn::Module>());
    bias_ = conv->register_parameter("bias", torch::zeros({config.dim}));
    const auto network = conv->register_module("nn", std::make_shared<nn::Module>());
    network->register_module("0", edge1_);
    network->register_module("2", edge2_);
    conv->register_module("lin", root_);
    register_module("gru", gru_);
    register_module("set2set", std::make_shared<nn::Module>())->register_module("lstm", lstm_);
    register_module("lin1", lin1_);
    register_module("lin2", lin2_);
}

double NnConv::cutoff() const {
    return std::numeric_limits<double>::infinity();
}

std::vector<Tensor> NnConv::inputs(const MoleculeGraph& graph, const HostTensors& make) const {
    const Features features = features_of(graph);
    std::vector<Tensor> inputs = {make.of(features.atoms).view({-1, atom_features}),
                                  make.of(features.edges).view({-1, edge_features})};
    for (Tensor& tensor : readout_inputs(graph, make)) {
        inputs.push_back(std::move(tensor));
    }
    return inputs;
}

std::vector<Tensor> NnConv::readout_inputs(const MoleculeGraph& graph, const HostTensors& make) {
    std::vector<double> inverse_degrees;
    for (const std::int64_t degree : graph.in_degrees()) {
        inverse_degrees.push_back(1 / static_cast<double>(std::max<std::int64_t>(degree, 1)));
    }
    std::vector<std::int64_t> counts(static_cast<std::size_t>(graph.molecules));
    for (const std::int64_t molecule : graph.molecule) {
        ++counts[static_cast<std::size_t>(molecule)];
    }
    const std::int64_t most = counts.empty() ? 0 : std::ranges::max(counts);
    std::vector<std::int64_t> padded(static_cast<std::size_t>(graph.molecules * most), 0);
    std::vector<double> mask(padded.size(), -std::numeric_limits<double>::infinity());
    std::int64_t atom = 0;
    for (std::int64_t molecule = 0; molecule < graph.molecules; ++molecule) {
        for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(molecule)]; ++i) {
            const auto at = static_cast<std::size_t>(molecule * most + i);
            padded[at] = atom++;
            mask[at] = 0;
        }
    }
    return {make.of(graph.source), make.of(graph.target), make.of(inverse_degrees).unsqueeze(1),
            make.of(padded), make.of(mask).view({graph.molecules, most, 1})};
}

/// Reads a set by attention in a few steps (Vinyals et al. 2016): [molecules, 2 dim].
Tensor NnConv::set2set(const Tensor& x, const Tensor& padded, const Tensor& mask) {
    const std::int64_t molecules = mask.size(0);
    const Tensor atoms = x.index_select(0, padded).view({molecules, -1, config_.dim});
    Tensor hidden = torch::zeros({molecules, config_.dim}, x.options());
    Tensor cell = hidden;
    Tensor read = torch::zeros({molecules, 2 * config_.dim}, x.options());
    for (std::int64_t step = 0; step < config_.set2set_steps; ++step) {
        std::tie(hidden, cell) = torch::lstm_cell(read, {hidden, cell}, lstm_->weight_ih, lstm_->weight_hh,
                                                  lstm_->bias_ih, lstm_->bias_hh);
        const Tensor attention =
            torch::softmax(torch::bmm(atoms, hidden.unsqueeze(2)) + mask, 1);  // [B, M, 1]
        const Tensor seen = torch::bmm(attention.transpose(1, 2), atoms).squeeze(1);
        read = torch::cat({hidden, seen}, 1);
    }
    return read;
}

Tensor NnConv::forward(const std::vector<Tensor>& inputs, std::int64_t) {
    const Tensor& source = inputs[2];
    const Tensor& target = inputs[3];
    Tensor x = torch::relu(lin0_(inputs[0]));
    // Edges do not change, so their matrices are made once and serve all steps.
    const Tensor matrices = edge2_(torch::relu(edge1_(inputs[1]))).view({-1, config_.dim, config_.dim});
    for (std::int64_t step = 0; step < config_.steps; ++step) {
        const Tensor messages = torch::bmm(x.index_select(0, source).unsqueeze(1), matrices).squeeze(1);
        const Tensor mean = sum_rows(messages, target, x.size(0)) * inputs[4];
        const Tensor message = torch::relu(mean + root_(x) + bias_);
        x = torch::gru_cell(message, x, gru_->weight_ih, gru_->weight_hh, gru_->bias_ih, gru_->bias_hh);
    }
    return lin2_(torch::relu(lin1_(set2set(x, inputs[5], inputs[6])))).squeeze(1);
}

double NnConv::flops(const MoleculeStatistics& s) const {
    const auto d = static_cast<double>(config_.dim);
    const auto h = static_cast<double>(config_.edge_hidden);
    const auto steps = static_cast<double>(config_.steps);
    const double matrices = 2 * (edge_features * h + h * d * d);
    const double step =
        s.edges * (2 * d * d + d) + s.atoms * 2 * (d * d + 6 * d * d);  // messages; root and GRU
    const double read = 2 * 12 * d * d + s.atoms * 4 * d;               // LSTM; attention
    return 3 * (s.atoms * 2 * atom_features * d + s.edges * matrices + steps * step +
                static_cast<double>(config_.set2set_steps) * read + 2 * (2 * d * d + d));
}

}  // namespace joulemark::train
