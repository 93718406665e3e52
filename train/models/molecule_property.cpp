// SPDX-License-Identifier: Apache-2.0
#include "models/molecule_property.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "data/qm9.h"
#include "data/sharding.h"
#include "models/dimenet.h"
#include "models/nnconv.h"
#include "models/pna.h"
#include "models/schnet.h"

namespace joulemark::train {
namespace {

using torch::Tensor;

constexpr std::int64_t usual_validation = 10'000;
constexpr std::uint64_t split_epoch =
    std::numeric_limits<std::uint64_t>::max();  // no epoch of training has it

struct MoleculeData {
    std::unique_ptr<MoleculeDataset> training;
    std::unique_ptr<MoleculeDataset> validation;  ///< null where there is none
};

MoleculeData synthetic_molecules(const Options& options) {
    const std::int64_t samples = options.samples.value_or(options.defaults.samples);
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (samples > most || options.eval_samples > most) {
        throw bad_input("the synthetic data set holds at most {} samples", most);
    }
    const auto make = [&](std::int64_t size, std::uint64_t stream) {
        return std::make_unique<SyntheticMolecules>(static_cast<std::uint32_t>(size), options.seed, stream);
    };
    return {make(samples, 0), options.eval_samples > 0 ? make(options.eval_samples, 1) : nullptr};
}

/// The files in an order of chance, the last of them held out.
MoleculeData qm9_molecules(const Options& options, std::size_t target, std::int64_t validation) {
    auto files = std::make_shared<const std::vector<std::string>>(find_qm9_files(options.dataset));
    const auto count = static_cast<std::int64_t>(files->size());
    const std::int64_t held_out = validation < 0 ? std::min(usual_validation, count / 10) : validation;
    if (held_out >= count) {
        throw bad_input("--set validation={} leaves none of the {} molecules of {} to train on", held_out,
                        count, options.dataset);
    }
    const std::vector<std::uint32_t> order =
        permutation(static_cast<std::uint32_t>(count), options.seed, split_epoch);
    const auto middle = order.end() - held_out;
    const auto make = [&](auto begin, auto end) {
        return std::make_unique<Qm9Molecules>(options.dataset, files, std::vector<std::uint32_t>(begin, end),
                                              target);
    };
    return {make(order.begin(), middle), held_out > 0 ? make(middle, order.end()) : nullptr};
}

class MoleculeProperty final : public Workload {
  public:
    MoleculeProperty(std::shared_ptr<MoleculeNetwork> network, MoleculeData data,
                     const MoleculeStatistics& statistics)
        : network_(std::move(network)), data_(std::move(data)), statistics_(statistics) {
        for (MoleculeDataset* part : {data_.training.get(), data_.validation.get()}) {
            if (part != nullptr) {
                part->set_builder(
                    [model = network_.get()](const MoleculeGraph& graph, const HostTensors& make) {
                        return model->inputs(graph, make);
                    },
                    network_->cutoff(), statistics_);
            }
        }
    }

    torch::nn::Module& module() override { return *network_; }
    const Dataset& training_data() const override { return *data_.training; }
    const Dataset* validation_data() const override { return data_.validation.get(); }
    std::string quality_name() const override { return "mae"; }
    std::optional<double> flops_per_sample() const override { return network_->flops(statistics_); }
    /// The reference registers SchNet's filter networks twice.
    std::string weight_name(const std::string& published) const override {
        return published.find(".conv.nn.") != std::string::npos ? std::string() : published;
    }

    Outcome forward(const Batch& batch) override {
        const Tensor error =
            network_->forward(batch.inputs, batch.samples).to(torch::kFloat32) - batch.target;
        Outcome outcome;
        outcome.loss = error.square().mean();
        outcome.quality_sum = error.detach().abs().sum() * statistics_.target_sd;
        return outcome;
    }

  private:
    std::shared_ptr<MoleculeNetwork> network_;
    MoleculeData data_;
    MoleculeStatistics statistics_;
};

/// What all of these models share: their data and its settings, read before the model's own are refused.
struct Property {
    explicit Property(HyperParameters& settings)
        : target(settings.integer("target", 0, 0)),
          validation(settings.integer("validation", -1, 0, std::numeric_limits<std::uint32_t>::max())) {}

    MoleculeData open(const Options& options) const {
        if (target >= static_cast<std::int64_t>(qm9_targets.size())) {
            throw bad_input("--set target={}: QM9 has the targets 0 to {}", target, qm9_targets.size() - 1);
        }
        return options.dataset == "synthetic"
                   ? synthetic_molecules(options)
                   : qm9_molecules(options, static_cast<std::size_t>(target), validation);
    }

    std::int64_t target;
    std::int64_t validation;
};

MoleculeStatistics statistics_of(const MoleculeDataset& data, double cutoff) {
    const MoleculeStatistics statistics = data.statistics(cutoff);
    if (statistics.edges == 0) {
        throw bad_input("no two atoms of {} are nearer than {} Angstrom: raise --set cutoff", data.name(),
                        cutoff);
    }
    return statistics;
}

std::unique_ptr<Workload> learn(std::shared_ptr<MoleculeNetwork> network, MoleculeData data) {
    const MoleculeStatistics statistics = statistics_of(*data.training, network->cutoff());
    return std::make_unique<MoleculeProperty>(std::move(network), std::move(data), statistics);
}

}  // namespace

std::unique_ptr<Workload> make_schnet(const Options& options, HyperParameters& settings,
                                      c10::intrusive_ptr<c10d::ProcessGroup>) {
    const Property property(settings);
    const SchNetConfig config = SchNetConfig::from(settings);
    settings.finish(options.model);
    return learn(std::make_shared<SchNet>(config), property.open(options));
}

std::unique_ptr<Workload> make_dimenet(const Options& options, HyperParameters& settings,
                                       c10::intrusive_ptr<c10d::ProcessGroup>) {
    const Property property(settings);
    const DimeNetConfig config = DimeNetConfig::from(settings);
    settings.finish(options.model);
    return learn(std::make_shared<DimeNet>(config), property.open(options));
}

std::unique_ptr<Workload> make_pna(const Options& options, HyperParameters& settings,
                                   c10::intrusive_ptr<c10d::ProcessGroup>) {
    const Property property(settings);
    PnaConfig config = PnaConfig::from(settings);
    settings.finish(options.model);
    MoleculeData data = property.open(options);
    const MoleculeStatistics statistics = statistics_of(*data.training, config.cutoff);
    config.in_degree = statistics.in_degree;
    config.log_degree_plus_1 = statistics.log_degree_plus_1;
    return std::make_unique<MoleculeProperty>(std::make_shared<Pna>(config), std::move(data), statistics);
}

std::unique_ptr<Workload> make_nnconv(const Options& options, HyperParameters& settings,
                                      c10::intrusive_ptr<c10d::ProcessGroup>) {
    const Property property(settings);
    const NnConvConfig config = NnConvConfig::from(settings);
    settings.finish(options.model);
    return learn(std::make_shared<NnConv>(config), property.open(options));
}

}  // namespace joulemark::train
