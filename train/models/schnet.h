// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hyper_parameters.h"
#include "models/molecule_network.h"

namespace joulemark::train {

/// SchNet (Schuett et al. 2017) with the names and initial distributions of PyTorch Geometric's. A filter
/// network, which that one registers twice (`mlp` and `conv.nn`), stands under `interactions.N.mlp` alone.
struct SchNetConfig {
    std::int64_t hidden = 128;
    std::int64_t filters = 128;
    std::int64_t interactions = 6;
    std::int64_t gaussians = 50;
    double cutoff = 10;

    /// Of --set. Throws bad_input for a value that cannot be.
    static SchNetConfig from(HyperParameters& settings);
};

class SchNetInteractionImpl : public torch::nn::Module {
  public:
    explicit SchNetInteractionImpl(const SchNetConfig& config);
    /// `x` [N, hidden], `basis` [E, gaussians], `decay` [E, 1].
    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& basis, const torch::Tensor& decay,
                          const torch::Tensor& source, const torch::Tensor& target);

  private:
    torch::nn::Linear filter1_, filter2_, lin1_, lin2_, lin_;
};
TORCH_MODULE(SchNetInteraction);

class SchNet final : public MoleculeNetwork {
  public:
    explicit SchNet(const SchNetConfig& config);

    double cutoff() const override { return config_.cutoff; }
    /// {z, molecule [N], source, target [E], distance [E, 1]}.
    std::vector<torch::Tensor> inputs(const MoleculeGraph& graph, const HostTensors& make) const override;
    torch::Tensor forward(const std::vector<torch::Tensor>& inputs, std::int64_t molecules) override;
    double flops(const MoleculeStatistics& statistics) const override;

  private:
    SchNetConfig config_;
    torch::nn::Embedding embedding_;
    torch::Tensor offset_;  ///< centres of the Gaussians
    double coefficient_;
    torch::nn::ModuleList interactions_;
    torch::nn::Linear lin1_, lin2_;
};

}  // namespace joulemark::train
