// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/sharding.h"
#include "engine/checkpoint.h"
#include "engine/device.h"
#include "engine/loss_log.h"
#include "engine/marks.h"
#include "engine/mllog.h"
#include "engine/optimizer.h"
#include "engine/options.h"
#include "engine/registry.h"
#include "engine/schedule.h"
#include "parallel/reducer.h"
#include "parallel/world.h"

namespace joulemark::train {

/// One training run of this rank. Nothing inside an epoch waits for the device: losses and qualities are
/// collected there and read once, when the device has come to the epoch's end and the edge has been marked.
class Training {
  public:
    /// Sets everything up, together with the other ranks: throws what World::together throws.
    Training(const Model& model, const Options& options, World& world);

    /// All epochs; check_failed, on all ranks alike, when the training has diverged. What it throws is this
    /// rank's alone: the caller ends the others.
    ExitCode run();

  private:
    /// What an epoch or an evaluation came to.
    struct Totals {
        double loss = 0;     ///< mean over what the workload counts, of all ranks
        double quality = 0;  ///< the same
        std::vector<double> further;
        std::int64_t samples = 0;        ///< of all ranks
        std::int64_t tokens = 0;         ///< of all ranks
        std::int64_t local_samples = 0;  ///< of this rank
        std::int64_t local_tokens = 0;   ///< of this rank
        std::int64_t updates = 0;        ///< all ranks do each of them together
        std::int64_t begin_ns = 0;
        std::int64_t end_ns = 0;
    };

    /// Of the epoch in progress, this rank's, fp64 on the device.
    struct Sums {
        torch::Tensor losses;   ///< [updates of an epoch]
        torch::Tensor quality;  ///< sum, count, sums of the further metrics
    };

    void open_data(const Model& model);
    void place_model();
    void join_ranks();
    void start_loader();
    std::optional<BatchPlan> plan_next_batch();
    Loader::Settings loader_settings(BadSamples bad_samples) const;

    Totals train_epoch(Feed& feed, std::int64_t epoch);
    void update(Feed& feed, Totals& totals);
    void divide_by_weights(const torch::Tensor& weights, torch::Tensor loss_of_update) const;
    void seed_generator() const;
    void take_quality(const torch::Tensor& sums, Totals& totals) const;
    std::optional<Totals> evaluate(std::int64_t epoch);
    void dump_gradients() const;

    std::optional<double> watched_loss(std::int64_t epoch, const Totals& trained,
                                       const std::optional<Totals>& evaluated) const;

    bool inside_epoch() const { return step_ % steps_per_epoch_ != 0; }
    bool evaluates() const { return workload_->validation_data() != nullptr && options_.eval_every > 0; }
    bool evaluation_is_due(std::int64_t epoch) const { return (epoch + 1) % options_.eval_every == 0; }
    Identity make_identity() const;
    Identity shared_by_ranks() const;
    NamedTensors state() const;
    void save_checkpoint();
    void resume();

    void announce() const;
    void report(std::int64_t epoch, const Totals& trained, const std::optional<Totals>& evaluated);
    std::int64_t count_damaged() const;
    ExitCode diverged(std::int64_t epoch, const std::string& part, const std::string& what) const;
    RegionCounts region_counts(const Totals& totals, const std::string& quality_name) const;
    nlohmann::json mllog_counts(const Totals& totals, std::int64_t epoch) const;
    std::string direction() const { return workload_->higher_is_better() ? "higher" : "lower"; }
    void tell(const std::string& line) const;

    const Options& options_;
    World& world_;
    Marks marks_;
    MlLog mllog_;
    std::string model_name_;
    torch::Device device_ = torch::kCPU;
    int threads_ = 1;
    int loader_threads_ = 1;
    std::optional<LossLog> losses_;  ///< rank 0's

    std::unique_ptr<Workload> workload_;
    std::map<std::string, std::string> settings_;  ///< the model's, defaults filled in
    std::int64_t parameters_ = 0;
    std::unique_ptr<Optimizer> optimizer_;
    std::optional<LossScaler> scaler_;
    std::shared_ptr<c10d::Reducer> reducer_;  ///< null for one rank
    std::optional<LrSchedule> schedule_;
    Identity identity_;
    Sums sums_;

    Shard shard_;
    std::int64_t samples_per_epoch_ = 0;  ///< of all ranks, before the last partial batch is left out
    std::int64_t steps_per_epoch_ = 0;
    std::int64_t steps_ = 0;  ///< of the run
    std::int64_t step_ = 0;   ///< updates done
    std::int64_t evaluations_ = 0;

    std::int64_t planned_ = 0;          ///< backward passes planned: the loader is ahead, also across epochs
    std::vector<std::uint32_t> order_;  ///< of the epoch being planned
    std::unique_ptr<Loader> loader_;    ///< below what its threads use
};

}  // namespace joulemark::train
