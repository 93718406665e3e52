// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hyper_parameters.h"
#include "models/bessel.h"
#include "models/molecule_network.h"

namespace joulemark::train {

/// DimeNet (Klicpera et al. 2020): messages between atoms that see the angles between neighbouring bonds.
/// Names, shapes and initial distributions are those of PyTorch Geometric's DimeNet.
struct DimeNetConfig {
    std::int64_t hidden = 128;
    std::int64_t blocks = 6;
    std::int64_t bilinear = 8;
    std::int64_t spherical = 7;
    std::int64_t radial = 6;
    double cutoff = 5;

    /// Of --set. Throws bad_input for a value that cannot be.
    static DimeNetConfig from(HyperParameters& settings);
};

class DimeNetResidualImpl : public torch::nn::Module {
  public:
    explicit DimeNetResidualImpl(std::int64_t hidden);
    torch::Tensor forward(const torch::Tensor& x);

  private:
    torch::nn::Linear lin1_, lin2_;
};
TORCH_MODULE(DimeNetResidual);

class DimeNetInteractionImpl : public torch::nn::Module {
  public:
    explicit DimeNetInteractionImpl(const DimeNetConfig& config);
    /// Messages `x` [E, hidden], `rbf` [E, radial], `sbf` [E D, spherical radial] and the message k->j of
    /// each of the up to D triplets of an edge j->i, `kj` [E D]; triplets that are not there have an `sbf` of
    /// 0.
    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& rbf, const torch::Tensor& sbf,
                          const torch::Tensor& kj);

  private:
    torch::nn::Linear lin_rbf_, lin_sbf_, lin_kj_, lin_ji_, lin_;
    torch::Tensor w_;  ///< [hidden, bilinear, hidden]
    DimeNetResidual before_skip_, after_skip0_, after_skip1_;
};
TORCH_MODULE(DimeNetInteraction);

class DimeNetOutputImpl : public torch::nn::Module {
  public:
    explicit DimeNetOutputImpl(const DimeNetConfig& config);
    /// [N, 1].
    torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& rbf, const torch::Tensor& target,
                          std::int64_t atoms);

  private:
    torch::nn::Linear lin_rbf_, lin_;
    std::vector<torch::nn::Linear> lins_;
};
TORCH_MODULE(DimeNetOutput);

class DimeNet final : public MoleculeNetwork {
  public:
    explicit DimeNet(const DimeNetConfig& config);

    double cutoff() const override { return config_.cutoff; }
    /// {z, molecule [N], source, target [E], distance / cutoff [E, 1], smooth_inverse of it [E, 1], radial
    /// parts of the spherical basis [E, spherical radial], kj [E D], angular parts [E D, spherical]}.
    std::vector<torch::Tensor> inputs(const MoleculeGraph& graph, const HostTensors& make) const override;
    torch::Tensor forward(const std::vector<torch::Tensor>& inputs, std::int64_t molecules) override;
    double flops(const MoleculeStatistics& statistics) const override;

  private:
    DimeNetConfig config_;
    SphericalBasis basis_;
    torch::Tensor frequencies_;  ///< [radial]
    torch::nn::Embedding embedding_;
    torch::nn::Linear lin_rbf_, lin_;
    torch::nn::ModuleList outputs_, interactions_;
};

}  // namespace joulemark::train
