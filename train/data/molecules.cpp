// SPDX-License-Identifier: Apache-2.0
#include "data/molecules.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>

#include "core/files.h"
#include "data/digest.h"
#include "data/qm9.h"
#include "data/random.h"

namespace joulemark::train {
namespace {

constexpr std::uint32_t most_for_statistics = 10'000;

/// How many of 100,000 molecules of QM9 have 3, 4, ... 29 atoms.
constexpr std::array<std::uint32_t, 27> sizes = {1,    4,    5,    9,    16,    49,    124,   362,   807,
                                                 1689, 3060, 5136, 7796, 10644, 13025, 13364, 13832, 9482,
                                                 9970, 3393, 4848, 539,  1506,  48,    266,   0,     25};
constexpr std::size_t smallest = 3;
constexpr std::size_t most_heavy = 9;

using Point = std::array<double, 3>;

double distance(const Point& a, const Point& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

std::size_t draw_size(KeyedRandom& random) {
    static const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    std::uint64_t left = random.below(all);
    std::size_t size = 0;
    while (left >= sizes[size]) {
        left -= sizes[size++];
    }
    return smallest + size;
}

/// A point at `length` from a random one of `anchors` that is not too near to any of `taken`, if one is found
/// soon.
Point attach(std::span<const Point> anchors, std::span<const Point> taken, double length, double nearest,
             KeyedRandom& random) {
    Point point{};
    for (int attempt = 0; attempt < 50; ++attempt) {
        const Point& anchor = anchors[random.below(anchors.size())];
        const double z = random.uniform(-1, 1);
        const double turn = random.uniform(0, 2 * std::numbers::pi);
        const double flat = std::sqrt(1 - z * z);
        point = {anchor[0] + length * flat * std::cos(turn), anchor[1] + length * flat * std::sin(turn),
                 anchor[2] + length * z};
        if (std::ranges::all_of(taken,
                                [&](const Point& other) { return distance(point, other) >= nearest; })) {
            break;
        }
    }
    return point;
}

/// What an atom adds to the made-up target, and a pair of such atoms.
double contribution(std::uint8_t z) {
    return 0.4 + 0.1 * static_cast<double>(z);
}
double contribution(std::uint8_t a, std::uint8_t b, double apart) {
    return 0.1 * contribution(a) * contribution(b) / (1 + apart);
}

template <typename T>
torch::Tensor host_tensor(std::span<const T> values, torch::Dtype dtype, bool pin) {
    torch::Tensor tensor = torch::empty({static_cast<std::int64_t>(values.size())},
                                        torch::TensorOptions(dtype).pinned_memory(pin));
    if (dtype == torch::kFloat32) {
        std::ranges::transform(values, tensor.mutable_data_ptr<float>(),
                               [](T v) { return static_cast<float>(v); });
    } else {
        std::ranges::copy(values, tensor.mutable_data_ptr<T>());
    }
    return tensor;
}

}  // namespace

torch::Tensor HostTensors::of(const std::vector<std::int64_t>& values) const {
    return host_tensor(std::span(values), torch::kInt64, pin);
}

torch::Tensor HostTensors::of(const std::vector<double>& values) const {
    return host_tensor(std::span(values), real, pin);
}

std::vector<std::int64_t> MoleculeGraph::in_degrees() const {
    std::vector<std::int64_t> degrees(atoms(), 0);
    for (const std::int64_t atom : target) {
        ++degrees[static_cast<std::size_t>(atom)];
    }
    return degrees;
}

void MoleculeGraph::add_atoms(const Molecule& added) {
    z.insert(z.end(), added.z.begin(), added.z.end());
    position.insert(position.end(), added.position.begin(), added.position.end());
    molecule.insert(molecule.end(), added.z.size(), molecules);
    ++molecules;
}

void MoleculeGraph::add(const Molecule& added, double cutoff) {
    const auto first = static_cast<std::int64_t>(atoms());
    add_atoms(added);
    const double limit = cutoff * cutoff;
    const double* p = added.position.data();
    const auto count = static_cast<std::int64_t>(added.z.size());
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
            const double x = p[3 * i] - p[3 * j];
            const double y = p[3 * i + 1] - p[3 * j + 1];
            const double w = p[3 * i + 2] - p[3 * j + 2];
            const double square = x * x + y * y + w * w;
            if (i != j && square < limit) {
                source.push_back(first + j);
                target.push_back(first + i);
                distance.push_back(std::sqrt(square));
            }
        }
    }
}

void MoleculeDataset::set_builder(Builder builder, double cutoff, const MoleculeStatistics& statistics) {
    builder_ = std::move(builder);
    cutoff_ = cutoff;
    statistics_ = statistics;
}

Result<Sample> MoleculeDataset::load(std::uint32_t index, std::uint64_t) const {
    auto read = molecule(index);
    if (!read) {
        return read.failure();
    }
    const auto count = static_cast<std::int64_t>(read->z.size());
    torch::Tensor z = torch::empty({count}, torch::kUInt8);
    torch::Tensor position = torch::empty({count, 3}, torch::kFloat64);
    torch::Tensor target = torch::empty({}, torch::kFloat64);
    std::ranges::copy(read->z, z.mutable_data_ptr<std::uint8_t>());
    std::ranges::copy(read->position, position.mutable_data_ptr<double>());
    *target.mutable_data_ptr<double>() = read->target;
    return Sample{std::move(z), std::move(position), std::move(target)};
}

Batch MoleculeDataset::collate(const std::vector<Sample>& samples, bool pin) const {
    MoleculeGraph graph;
    std::vector<double> targets;
    for (const Sample& sample : samples) {
        const auto* z = sample[0].const_data_ptr<std::uint8_t>();
        const auto* position = sample[1].const_data_ptr<double>();
        graph.add({{z, z + sample[0].numel()}, {position, position + sample[1].numel()}}, cutoff_);
        const double target = *sample[2].const_data_ptr<double>();
        targets.push_back((target - statistics_.target_mean) / statistics_.target_sd);
    }
    const HostTensors make{torch::kFloat32, pin};
    Batch batch;
    batch.inputs = builder_(graph, make);
    batch.target = make.of(targets);
    batch.samples = static_cast<std::int64_t>(samples.size());
    return batch;
}

MoleculeStatistics MoleculeDataset::statistics(double cutoff) const {
    const std::uint32_t count = std::min(size(), most_for_statistics);
    MoleculeStatistics sum;
    sum.target_sd = 0;
    double read = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto index = static_cast<std::uint32_t>(std::uint64_t{i} * size() / count);
        const auto added = molecule(index);
        if (!added) {
            continue;
        }
        ++read;
        const double difference = added->target - sum.target_mean;  // Welford
        sum.target_mean += difference / read;
        sum.target_sd += difference * (added->target - sum.target_mean);
        MoleculeGraph graph;
        graph.add(*added, cutoff);
        sum.atoms += static_cast<double>(graph.atoms());
        sum.edges += static_cast<double>(graph.edges());
        for (const std::int64_t degree : graph.in_degrees()) {
            const auto d = static_cast<double>(degree);
            sum.triplets += d * std::max(0.0, d - 1);
            sum.log_degree_plus_1 += std::log(d + 1);
        }
    }
    if (read == 0) {
        throw bad_input("none of the first {} molecules of {} can be read", count, name());
    }
    const double sd = std::sqrt(sum.target_sd / std::max(1.0, read - 1));
    return {.target_mean = sum.target_mean,
            .target_sd = sd > 0 ? sd : 1,
            .atoms = sum.atoms / read,
            .edges = sum.edges / read,
            .triplets = sum.triplets / read,
            .in_degree = sum.edges / sum.atoms,
            .log_degree_plus_1 = sum.log_degree_plus_1 / sum.atoms};
}

Result<Molecule> SyntheticMolecules::molecule(std::uint32_t index) const {
    KeyedRandom random{seed_, molecule_stream, stream_, index};
    const std::size_t count = draw_size(random);
    const std::size_t heavy = std::clamp<std::size_t>((count + 1) / 2, 1, most_heavy);
    Molecule made;
    std::vector<Point> points;
    for (std::size_t atom = 0; atom < count; ++atom) {
        if (atom == 0) {
            points.push_back({0, 0, 0});
        } else if (atom < heavy) {
            points.push_back(attach(points, points, 1.45, 1.35, random));
        } else {
            points.push_back(attach(std::span(points).first(heavy), points, 1.09, 1.05, random));
        }
        static constexpr std::array<std::uint8_t, 9> kinds = {6, 6, 6, 6, 6, 6, 7, 8, 8};  // F is rare
        made.z.push_back(atom < heavy ? kinds[random.below(kinds.size())] : 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
        made.position.insert(made.position.end(), points[i].begin(), points[i].end());
        made.target += contribution(made.z[i]);
        for (std::size_t j = 0; j < i; ++j) {
            made.target += contribution(made.z[i], made.z[j], distance(points[i], points[j]));
        }
    }
    return made;
}

std::string Qm9Molecules::digest() const {
    Digest digest;
    for (const std::uint32_t index : part_) {
        digest.add((*files_)[index]);
    }
    return digest.text();
}

Result<Molecule> Qm9Molecules::molecule(std::uint32_t index) const {
    const std::filesystem::path path = folder_ / (*files_)[part_[index]];
    const auto text = files::read(path);
    if (!text) {
        return Failure{fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno)),
                       "check the file"};
    }
    auto parsed = parse_qm9(*text, path.string());
    if (!parsed) {
        return parsed.failure();
    }
    const Qm9Target& target = qm9_targets[target_];
    return Molecule{std::move(parsed->z), std::move(parsed->position),
                    parsed->properties[target.column] * target.factor};
}

}  // namespace joulemark::train
