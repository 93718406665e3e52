// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "models.h"
#include "models/dimenet.h"
#include "models/nnconv.h"
#include "models/pna.h"
#include "models/schnet.h"

namespace joulemark::train::parity {
namespace {

using torch::Tensor;

template <typename T>
std::vector<T> values_of(const Tensor& tensor, torch::Dtype dtype) {
    const Tensor flat = tensor.to(torch::kCPU, dtype).contiguous();
    return {flat.const_data_ptr<T>(), flat.const_data_ptr<T>() + flat.numel()};
}

/// The fixture's atoms and edges; lengths follow from the positions.
MoleculeGraph graph_of(const Inputs& inputs) {
    const auto integers = [&](const char* name) {
        return values_of<std::int64_t>(inputs.at(name), torch::kInt64);
    };
    MoleculeGraph graph;
    graph.molecules = inputs.at("property").numel();
    graph.z = integers("z");
    graph.position = values_of<double>(inputs.at("position"), torch::kFloat64);
    graph.molecule = integers("molecule");
    graph.source = integers("source");
    graph.target = integers("target");
    for (std::size_t edge = 0; edge < graph.edges(); ++edge) {
        const double* a = &graph.position[3 * static_cast<std::size_t>(graph.source[edge])];
        const double* b = &graph.position[3 * static_cast<std::size_t>(graph.target[edge])];
        graph.distance.push_back(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
    }
    return graph;
}

/// What training does with a batch, from the graph on; batch norm uses the batch's own statistics.
class Molecules final : public ParityModel {
  public:
    explicit Molecules(std::unique_ptr<MoleculeNetwork> network) : network_(std::move(network)) {}
    torch::nn::Module& module() override { return *network_; }
    Tensor loss(const Inputs& inputs) override {
        const Tensor& property = inputs.at("property");
        const HostTensors make{property.scalar_type()};
        const MoleculeGraph graph = graph_of(inputs);
        std::vector<Tensor> tensors;
        if (const auto features = inputs.find("atom_features"); features != inputs.end()) {
            tensors = NnConv::readout_inputs(graph, make);
            tensors.insert(tensors.begin(), {features->second, inputs.at("edge_features")});
        } else {
            tensors = network_->inputs(graph, make);
        }
        for (Tensor& tensor : tensors) {
            tensor = tensor.to(property.device());
        }
        network_->train();
        return (network_->forward(tensors, graph.molecules) - property).square().mean();
    }

  private:
    std::unique_ptr<MoleculeNetwork> network_;
};

}  // namespace

std::unique_ptr<ParityModel> make_schnet(HyperParameters& settings) {
    return std::make_unique<Molecules>(std::make_unique<SchNet>(SchNetConfig::from(settings)));
}

std::unique_ptr<ParityModel> make_dimenet(HyperParameters& settings) {
    return std::make_unique<Molecules>(std::make_unique<DimeNet>(DimeNetConfig::from(settings)));
}

std::unique_ptr<ParityModel> make_pna(HyperParameters& settings) {
    return std::make_unique<Molecules>(std::make_unique<Pna>(PnaConfig::from(settings)));
}

std::unique_ptr<ParityModel> make_nnconv(HyperParameters& settings) {
    return std::make_unique<Molecules>(std::make_unique<NnConv>(NnConvConfig::from(settings)));
}

}  // namespace joulemark::train::parity
