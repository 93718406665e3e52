// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace joulemark::train {

struct Molecule {
    std::vector<std::uint8_t> z;   ///< atomic numbers
    std::vector<double> position;  ///< x, y, z of each atom in Angstrom
    double target = 0;
};

/// The molecules of a batch as one graph on the host: atoms one molecule after the other, edges from `source`
/// to `target` in both directions, sorted by target.
struct MoleculeGraph {
    std::int64_t molecules = 0;
    std::vector<std::int64_t> z;         ///< per atom
    std::vector<double> position;        ///< three per atom
    std::vector<std::int64_t> molecule;  ///< per atom
    std::vector<std::int64_t> source, target;
    std::vector<double> distance;  ///< per edge, Angstrom

    std::size_t atoms() const { return z.size(); }
    std::size_t edges() const { return source.size(); }
    std::vector<std::int64_t> in_degrees() const;  ///< per atom

    void add_atoms(const Molecule& molecule);
    /// Adds it with an edge between any two atoms nearer than `cutoff`; infinity for all of them.
    void add(const Molecule& molecule, double cutoff);
};

/// What models and their FLOPs need to know of the training data.
struct MoleculeStatistics {
    double target_mean = 0;
    double target_sd = 1;
    double atoms = 0;  ///< means per molecule
    double edges = 0;
    double triplets = 0;   ///< pairs of edges k->j, j->i with k != i
    double in_degree = 0;  ///< means per atom
    double log_degree_plus_1 = 0;
};

/// Makes tensors from host values: reals of one type, in page-locked memory if `pin`.
struct HostTensors {
    torch::Dtype real = torch::kFloat32;
    bool pin = false;

    torch::Tensor of(const std::vector<std::int64_t>& values) const;
    torch::Tensor of(const std::vector<double>& values) const;
};

/// Molecules with one target. A sample is {uint8 z [n], float64 position [n, 3], float64 target []}. A batch
/// has the inputs that the model's builder makes, and as its target float32 [B] normalised to (y - mean) /
/// sd.
class MoleculeDataset : public Dataset {
  public:
    using Builder = std::function<std::vector<torch::Tensor>(const MoleculeGraph&, const HostTensors&)>;
    /// Before the first `collate`.
    void set_builder(Builder builder, double cutoff, const MoleculeStatistics& statistics);

    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    Batch collate(const std::vector<Sample>& samples, bool pin) const override;
    virtual Result<Molecule> molecule(std::uint32_t index) const = 0;

    /// Over at most 10,000 molecules, evenly spread; those that cannot be read are left out. Throws bad_input
    /// when none can be.
    MoleculeStatistics statistics(double cutoff) const;

  private:
    Builder builder_;
    double cutoff_ = 0;
    MoleculeStatistics statistics_;
};

/// Made-up molecules with QM9's distribution of sizes: up to nine heavy atoms in a random tree of bonds,
/// hydrogens around them. The target is a sum of contributions of atoms and pairs, so that there is something
/// to learn.
class SyntheticMolecules final : public MoleculeDataset {
  public:
    SyntheticMolecules(std::uint32_t size, std::uint64_t seed, std::uint64_t stream)
        : size_(size), seed_(seed), stream_(stream) {}
    std::uint32_t size() const override { return size_; }
    std::string name() const override { return "the synthetic data set"; }
    Result<Molecule> molecule(std::uint32_t index) const override;

  private:
    std::uint32_t size_;
    std::uint64_t seed_;
    std::uint64_t stream_;  ///< training and validation differ in it
};

/// Files of QM9 (data/qm9.h), read when they are asked for.
class Qm9Molecules final : public MoleculeDataset {
  public:
    using Files = std::shared_ptr<const std::vector<std::string>>;
    Qm9Molecules(std::filesystem::path folder, Files files, std::vector<std::uint32_t> part,
                 std::size_t target)
        : folder_(std::move(folder)), files_(std::move(files)), part_(std::move(part)), target_(target) {}
    std::uint32_t size() const override { return static_cast<std::uint32_t>(part_.size()); }
    std::string name() const override { return folder_.string(); }
    std::string digest() const override;
    Result<Molecule> molecule(std::uint32_t index) const override;

  private:
    std::filesystem::path folder_;
    Files files_;
    std::vector<std::uint32_t> part_;  ///< indices into files_
    std::size_t target_;
};

}  // namespace joulemark::train
