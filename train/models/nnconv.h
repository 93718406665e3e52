// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hyper_parameters.h"
#include "models/molecule_network.h"

namespace joulemark::train {

/// Message passing whose edges have matrices (Gilmer et al. 2017) with a GRU per atom and Set2Set as readout:
/// the network of PyTorch Geometric's QM9 example, under its names, on the complete graph of a molecule.
struct NnConvConfig {
    std::int64_t dim = 64;
    std::int64_t steps = 3;
    std::int64_t set2set_steps = 3;
    std::int64_t edge_hidden = 128;  ///< of the network that makes the matrices

    /// Of --set. Throws bad_input for a value that cannot be.
    static NnConvConfig from(HyperParameters& settings);
};

/// A cell of one step, with the names of a one-layer recurrent layer.
class RecurrentCellImpl : public torch::nn::Module {
  public:
    /// `gates`: 3 for a GRU, 4 for an LSTM.
    RecurrentCellImpl(std::int64_t in, std::int64_t hidden, std::int64_t gates);

    torch::Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
TORCH_MODULE(RecurrentCell);

class NnConv final : public MoleculeNetwork {
  public:
    static constexpr std::int64_t atom_features = 11;
    static constexpr std::int64_t edge_features = 5;
    explicit NnConv(const NnConvConfig& config);

    double cutoff() const override;
    /// {atom features [N, 11], edge features [E, 5], source, target [E], 1 / in-degree [N, 1], atoms of each
    /// molecule padded to the largest [B M], 0 or -infinity for those [B, M, 1]}.
    std::vector<torch::Tensor> inputs(const MoleculeGraph& graph, const HostTensors& make) const override;
    torch::Tensor forward(const std::vector<torch::Tensor>& inputs, std::int64_t molecules) override;
    double flops(const MoleculeStatistics& statistics) const override;

    /// The layers behind `inputs` whose features are given: for features from another source.
    static std::vector<torch::Tensor> readout_inputs(const MoleculeGraph& graph, const HostTensors& make);

  private:
    torch::Tensor set2set(const torch::Tensor& x, const torch::Tensor& padded, const torch::Tensor& mask);

    NnConvConfig config_;
    torch::nn::Linear lin0_;
    torch::nn::Linear edge1_, edge2_, root_;
    torch::Tensor bias_;
    RecurrentCell gru_, lstm_;
    torch::nn::Linear lin1_, lin2_;
};

}  // namespace joulemark::train
