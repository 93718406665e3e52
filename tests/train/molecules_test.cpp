// SPDX-License-Identifier: Apache-2.0
#include "data/molecules.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "engine/registry.h"
#include "models/dimenet.h"
#include "models/nnconv.h"
#include "models/pna.h"
#include "models/schnet.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using torch::Tensor;
constexpr double everything = std::numeric_limits<double>::infinity();

/// Four carbon atoms on a line, 1.4 apart.
Molecule chain() {
    return {{6, 6, 6, 6}, {0, 0, 0, 1.4, 0, 0, 2.8, 0, 0, 4.2, 0, 0}, 1};
}

TEST(MoleculeGraph, JoinsNearAtomsOfOneMolecule) {
    MoleculeGraph graph;
    graph.add(chain(), 1.5);
    graph.add({{1, 1}, {0, 0, 0, 0, 0, 0.7}, 0}, 1.5);
    EXPECT_EQ(graph.molecules, 2);
    EXPECT_THAT(graph.molecule, ElementsAre(0, 0, 0, 0, 1, 1));
    EXPECT_THAT(graph.target, ElementsAre(0, 1, 1, 2, 2, 3, 4, 5));
    EXPECT_THAT(graph.source, ElementsAre(1, 0, 2, 1, 3, 2, 5, 4));
    EXPECT_THAT(graph.in_degrees(), ElementsAre(1, 2, 2, 1, 1, 1));
    EXPECT_NEAR(graph.distance[0], 1.4, 1e-12);
    EXPECT_NEAR(graph.distance[6], 0.7, 1e-12);
    MoleculeGraph complete;
    complete.add(chain(), everything);
    EXPECT_EQ(complete.edges(), 12U);
}

TEST(SyntheticMolecules, HaveQm9sSizesAndBelievableDistances) {
    const SyntheticMolecules data(4000, 3, 0);
    double atoms = 0;
    for (std::uint32_t i = 0; i < data.size(); ++i) {
        const auto molecule = data.molecule(i);
        ASSERT_TRUE(molecule);
        atoms += static_cast<double>(molecule->z.size());
        ASSERT_GE(molecule->z.size(), 3U);
        ASSERT_LE(molecule->z.size(), 29U);
    }
    EXPECT_NEAR(atoms / 4000, 18.0, 0.2);
    const MoleculeStatistics statistics = data.statistics(5);
    EXPECT_GT(statistics.target_sd, 0.1);
    EXPECT_LT(statistics.edges, statistics.atoms * (statistics.atoms - 1) * 1.1);
    EXPECT_GT(statistics.edges, statistics.atoms * 8);
    EXPECT_NEAR(statistics.in_degree, statistics.edges / statistics.atoms, 1e-9);
    EXPECT_EQ(data.molecule(17)->position, data.molecule(17)->position);
    EXPECT_NE(data.molecule(17)->position, SyntheticMolecules(4000, 3, 1).molecule(17)->position);
}

/// What is predicted for molecules must not depend on which others share their batch, nor on how they are
/// turned.
void expect_molecules_alone(MoleculeNetwork& network) {
    network.eval();
    network.to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : network.parameters()) {
        parameter.normal_(0, 0.2);  // DimeNet's outputs start at zero
    }
    const HostTensors make{torch::kFloat64};
    const SyntheticMolecules data(5, 11, 0);
    MoleculeGraph together;
    std::vector<double> alone;
    for (std::uint32_t i = 0; i < data.size(); ++i) {
        Molecule molecule = *data.molecule(i);
        together.add(molecule, network.cutoff());
        for (std::size_t at = 0; at < molecule.position.size(); at += 3) {
            std::swap(molecule.position[at], molecule.position[at + 2]);  // turned, mirrored and moved
            molecule.position[at + 1] += 3;
        }
        MoleculeGraph graph;
        graph.add(molecule, network.cutoff());
        alone.push_back(network.forward(network.inputs(graph, make), 1).item<double>());
    }
    const Tensor predicted = network.forward(network.inputs(together, make), together.molecules);
    ASSERT_EQ(predicted.sizes(), (std::vector<std::int64_t>{5}));
    for (std::int64_t i = 0; i < 5; ++i) {
        const double expected = alone[static_cast<std::size_t>(i)];
        EXPECT_NEAR(predicted[i].item<double>(), expected, 1e-9 * std::max(1.0, std::abs(expected)));
    }
    EXPECT_GT(predicted.std().item<double>(), 0);
}

TEST(SchNet, SeesEveryMoleculeAlone) {
    SchNet network({.hidden = 16, .filters = 8, .interactions = 2, .gaussians = 10, .cutoff = 5});
    expect_molecules_alone(network);
}

TEST(DimeNet, SeesEveryMoleculeAlone) {
    DimeNet network({.hidden = 8, .blocks = 1, .bilinear = 2, .spherical = 3, .radial = 3, .cutoff = 3});
    expect_molecules_alone(network);
}

TEST(Pna, SeesEveryMoleculeAlone) {
    Pna network({.hidden = 6, .layers = 2, .towers = 2, .gaussians = 5, .cutoff = 4, .log_degree_plus_1 = 2});
    expect_molecules_alone(network);
}

TEST(NnConv, SeesEveryMoleculeAlone) {
    NnConv network({.dim = 6, .steps = 2, .set2set_steps = 2, .edge_hidden = 5});
    expect_molecules_alone(network);
}

TEST(NnConv, FeaturesComeFromElementsAndDistances) {
    // Formaldehyde: C=O of 1.21, two C-H of 1.11.
    const Molecule molecule{{6, 8, 1, 1}, {0, 0, 0, 1.21, 0, 0, -0.6, 0.93, 0, -0.6, -0.93, 0}};
    MoleculeGraph graph;
    graph.add(molecule, everything);
    const NnConv network(NnConvConfig{});
    const auto inputs = network.inputs(graph, HostTensors{});
    const auto row = [](const Tensor& tensor, std::int64_t i) {
        const Tensor values = tensor[i].contiguous();
        return std::vector<float>(values.const_data_ptr<float>(),
                                  values.const_data_ptr<float>() + values.numel());
    };
    EXPECT_THAT(row(inputs[0], 0),
                ElementsAre(0, 1, 0, 0, 0, 6, 0, 0, 1, 0, 2));  // three neighbours, two hydrogens
    EXPECT_THAT(row(inputs[0], 1), ElementsAre(0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0));
    EXPECT_THAT(row(inputs[1], 0), ElementsAre(0, 1, 0, 0, 1.21F));              // O to C: double
    EXPECT_EQ(row(inputs[1], 1)[0], 1);                                          // H to C: single
    EXPECT_THAT(row(inputs[1], 4), ElementsAre(0, 0, 0, 0, testing::Gt(1.9F)));  // H to O: none
}

TEST(MoleculeModels, HaveTheRegistrysNumberOfParameters) {
    const auto count = [](const MoleculeNetwork& network) {
        std::int64_t parameters = 0;
        for (const Tensor& parameter : network.parameters()) {
            parameters += parameter.numel();
        }
        return parameters;
    };
    EXPECT_EQ(count(SchNet(SchNetConfig{})), find_model("schnet").parameters);
    EXPECT_EQ(count(DimeNet(DimeNetConfig{})), find_model("dimenet").parameters);
    EXPECT_EQ(count(Pna(PnaConfig{})), find_model("pna").parameters);
    EXPECT_EQ(count(NnConv(NnConvConfig{})), find_model("nnconv").parameters);
}

}  // namespace
}  // namespace joulemark::train
