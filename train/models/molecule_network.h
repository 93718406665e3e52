// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "data/molecules.h"
#include "models/precision.h"

namespace joulemark::train {

/// A network that predicts one number per molecule. What depends on the geometry alone - edges, angles, bases
/// - is computed on the host by `inputs`, so that `forward` is a few large operations on the device and never
/// waits.
class MoleculeNetwork : public torch::nn::Module {
  public:
    /// Of the graph, in Angstrom.
    virtual double cutoff() const = 0;
    /// What `forward` takes, from a graph with this cutoff.
    virtual std::vector<torch::Tensor> inputs(const MoleculeGraph& graph, const HostTensors& make) const = 0;
    /// [molecules].
    virtual torch::Tensor forward(const std::vector<torch::Tensor>& inputs, std::int64_t molecules) = 0;
    /// Forward and backward of an average molecule; docs/workloads.md derives it.
    virtual double flops(const MoleculeStatistics& statistics) const = 0;
};

/// What --set takes as a cutoff, in Angstrom.
inline constexpr double least_cutoff = 1;
inline constexpr double largest_cutoff = 100;

/// Sums rows of `values` [n, ...] into [size, ...] by `index` [n].
inline torch::Tensor sum_rows(const torch::Tensor& values, const torch::Tensor& index, std::int64_t size) {
    const torch::Tensor terms = at_least_float32(values);
    std::vector<std::int64_t> shape = terms.sizes().vec();
    shape[0] = size;
    return torch::zeros(shape, terms.options()).index_add(0, index, terms);
}

}  // namespace joulemark::train
