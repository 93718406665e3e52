// SPDX-License-Identifier: Apache-2.0
// How a training is kept in a checkpoint, and goes on from one.
#include <fmt/ranges.h>

#include "data/digest.h"
#include "engine/safetensors.h"
#include "engine/trainer.h"

namespace joulemark::train {

Identity Training::make_identity() const {
    Identity identity = identity_of(options_);
    identity["--dataset's samples"] = std::to_string(workload_->training_data().size());
    identity["contents of --dataset"] = workload_->training_data().digest();
    identity["samples an epoch"] = std::to_string(samples_per_epoch_);
    for (const auto& [name, value] : settings_) {
        if (name != "cache") {  // where something is kept, which does not change it
            identity["--set " + name] = value;
        }
    }
    if (options_.lr_schedule == LrCurve::plateau) {  // what it watches decides the learning rate
        const Dataset* validation = workload_->validation_data();
        identity["--eval-every"] = std::to_string(options_.eval_every);
        identity["validation samples"] = std::to_string(validation == nullptr ? 0 : validation->size());
        identity["contents of the validation data"] = validation == nullptr ? "none" : validation->digest();
    }
    return identity;
}

/// Ranks that differ in any of this would wait for each other for ever, or train something that nobody asked
/// for.
Identity Training::shared_by_ranks() const {
    Identity shared = identity_;
    shared.merge(train::shared_by_ranks(options_));
    shared.erase("--global-batch");
    const Dataset* validation = workload_->validation_data();
    shared["validation samples"] = std::to_string(validation == nullptr ? 0 : validation->size());
    shared["the number of updates done"] = std::to_string(step_);
    std::vector<std::string> shapes;
    for (const auto& [name, tensor] : state_of(workload_->module())) {
        shapes.push_back(fmt::format("{} [{}]", name, fmt::join(tensor.sizes(), ", ")));
    }
    shared["the shape of the network"] = Digest().add(fmt::format("{}", fmt::join(shapes, "\n"))).text();
    return shared;
}

/// All tensors that the next update depends on, except those of an epoch in progress.
NamedTensors Training::state() const {
    NamedTensors state;
    for (const auto& [name, tensor] : state_of(workload_->module())) {
        state.emplace_back("model." + name, tensor);
    }
    const NamedTensors parameters = trained_parameters(workload_->module());
    for (const auto& [slot, tensors] : optimizer_->state()) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const std::string owner =
                tensors.size() == parameters.size() ? parameters[i].first : std::string("all");
            state.emplace_back("optimizer." + slot + "." + owner, tensors[i]);
        }
    }
    if (scaler_) {
        for (const auto& [name, tensor] : scaler_->state()) {
            state.emplace_back("loss_scale." + name, tensor);
        }
    }
    return state;
}

/// All ranks take part; rank 0 writes. Inside an epoch its sums so far are kept too.
void Training::save_checkpoint() {
    if (options_.checkpoint.empty()) {
        return;
    }
    NamedTensors tensors = state();
    if (inside_epoch()) {
        const Sums all = {sums_.losses.clone(), sums_.quality.clone()};
        world_.all_reduce_sum(all.losses);
        world_.all_reduce_sum(all.quality);
        tensors.emplace_back("epoch.losses", all.losses);
        tensors.emplace_back("epoch.quality", all.quality);
    }
    if (world_.rank() == 0) {
        write_checkpoint(options_.checkpoint, {step_, evaluations_, world_.size(), schedule_->state()},
                         identity_, tensors);
        marks_.note({{"checkpoint", options_.checkpoint}, {"updates", step_}});
    }
}

void Training::resume() {
    identity_ = make_identity();
    if (options_.resume.empty()) {
        return;
    }
    Checkpoint checkpoint = read_checkpoint(options_.resume);
    step_ = checkpoint.position.step;
    NamedTensors tensors = state();
    if (checkpoint.tensors.contains("epoch.losses")) {
        tensors.emplace_back("epoch.losses", sums_.losses);
        tensors.emplace_back("epoch.quality", sums_.quality);
    }
    copy_state(tensors, checkpoint.tensors, "the checkpoint " + checkpoint.path);
    check_identity(checkpoint, identity_);
    if (inside_epoch() != checkpoint.tensors.contains("epoch.losses")) {
        throw bad_input("the header of the checkpoint {} is damaged", checkpoint.path);
    }
    if (step_ > steps_) {
        throw bad_input(
            "the checkpoint {} is of update {}, and this run ends after update {}: raise --epochs or --steps",
            checkpoint.path, step_, steps_);
    }
    if (world_.rank() != 0) {  // rank 0 has the sums of all
        sums_.losses.zero_();
        sums_.quality.zero_();
    } else if (checkpoint.position.ranks != world_.size()) {  // over which the mean will be taken
        sums_.losses.mul_(static_cast<double>(world_.size()) /
                          static_cast<double>(checkpoint.position.ranks));
    }
    evaluations_ = checkpoint.position.evaluations;
    schedule_->restore(checkpoint.position.schedule);
    planned_ = step_ * options_.accumulate;
    marks_.note({{"resumed", checkpoint.path}, {"updates", step_}});
    tell(fmt::format("goes on after update {} of {}", step_, steps_));
}

}  // namespace joulemark::train
