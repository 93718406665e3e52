// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hyper_parameters.h"
#include "models/molecule_network.h"

namespace joulemark::train {

/// Principal neighbourhood aggregation (Corso et al. 2020) in the form of PyTorch Geometric's example: an
/// embedding of the elements, four PNAConv layers of five towers (mean, min, max, standard deviation, each as
/// it is, amplified and attenuated by the degree) with batch norm, a sum over the atoms and a small network.
/// Names are that example's; where it embeds the four kinds of bonds, edges here have Gaussians of their
/// length (`edge_emb`, no weights).
struct PnaConfig {
    std::int64_t hidden = 75;  ///< multiple of the towers
    std::int64_t layers = 4;
    std::int64_t towers = 5;
    std::int64_t gaussians = 50;
    double cutoff = 5;
    double in_degree = 1;  ///< of the training data, see MoleculeStatistics
    double log_degree_plus_1 = 1;

    /// Of --set. Throws bad_input for a value that cannot be.
    static PnaConfig from(HyperParameters& settings);
};

class PnaConvImpl : public torch::nn::Module {
  public:
    explicit PnaConvImpl(const PnaConfig& config);
    /// `x` [N, hidden], `basis` [E, gaussians], `inverse_degree`, `log_degree` (ln(d + 1)),
    /// `least_log_degree` (the same with d of at least 1) [N, 1, 1, 1].
    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& basis, const torch::Tensor& source,
                          const torch::Tensor& target, const torch::Tensor& inverse_degree,
                          const torch::Tensor& log_degree, const torch::Tensor& least_log_degree);

  private:
    torch::Tensor aggregate(const torch::Tensor& messages, const torch::Tensor& target, std::int64_t atoms,
                            const torch::Tensor& inverse_degree) const;

    std::int64_t towers_;
    torch::nn::Linear edge_encoder_, lin_;
    std::vector<torch::nn::Linear> pre_, post_;
    torch::Tensor average_log_degree_;
};
TORCH_MODULE(PnaConv);

class Pna final : public MoleculeNetwork {
  public:
    explicit Pna(const PnaConfig& config);

    double cutoff() const override { return config_.cutoff; }
    /// {z, molecule [N], source, target [E], distance [E, 1], 1 / in-degree, ln(in-degree + 1) and the same
    /// with an in-degree of at least 1, all [N, 1, 1, 1]}.
    std::vector<torch::Tensor> inputs(const MoleculeGraph& graph, const HostTensors& make) const override;
    torch::Tensor forward(const std::vector<torch::Tensor>& inputs, std::int64_t molecules) override;
    double flops(const MoleculeStatistics& statistics) const override;

  private:
    PnaConfig config_;
    torch::nn::Embedding node_emb_;
    torch::Tensor offset_;  ///< centres of the Gaussians
    double coefficient_;
    torch::nn::ModuleList convs_;
    std::vector<torch::nn::BatchNorm1d> norms_;
    torch::nn::Linear mlp0_, mlp2_, mlp4_;
};

}  // namespace joulemark::train
