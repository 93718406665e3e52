// SPDX-License-Identifier: Apache-2.0
// How a training is kept in a checkpoint, and goes on from one.
#include <algorithm>

#include <fmt/ranges.h>

#include "engine/safetensors.h"
#include "engine/trainer.h"

namespace joulemark::train {

Identity Training::make_identity() const {
    const OptimizerSettings& optimizer = options_.optimizer;
    std::vector<std::string> settings = options_.settings;
    std::erase_if(settings, [](const std::string& setting) { return setting.starts_with("cache="); });
    std::ranges::sort(settings);
    Identity identity = {
        {"MODEL", model_name_},
        {"--set", fmt::format("{}", fmt::join(settings, " "))},
        {"--epochs", std::to_string(options_.epochs)},
        {"--image-size", std::to_string(options_.image_size)},
        {"--seed", std::to_string(options_.seed)},
        {"--global-batch", std::to_string(shard_.global_batch())},
        {"--precision", name_of(options_.precision)},
        {"--sync-bn", options_.sync_batch_norm ? "true" : "false"},
        {"--optimizer", name_of(optimizer.kind)},
        {"--lr", fmt::format("{}", scaled_lr(options_.lr, options_.lr_scaling, shard_.global_batch(),
                                             options_.defaults.lr_batch))},
        {"--lr-schedule", name_of(options_.lr_schedule)},
        {"--lr-warmup-epochs", fmt::format("{}", options_.lr_warmup_epochs)},
        {"--weight-decay", fmt::format("{}", optimizer.weight_decay)},
        {"--clip-norm", optimizer.clip_norm ? fmt::format("{}", *optimizer.clip_norm) : "none"},
        {"--dataset's samples", std::to_string(workload_->training_data().size())},
        {"contents of --dataset", workload_->training_data().digest()},
        {"samples an epoch", std::to_string(samples_per_epoch_)}};
    if (optimizer.kind == OptimizerKind::sgd) {
        identity["--momentum"] = fmt::format("{}", optimizer.momentum);
    } else {
        identity["--beta1, --beta2, --eps"] =
            fmt::format("{}, {}, {}", optimizer.beta1, optimizer.beta2, optimizer.eps);
    }
    if (options_.lr_schedule == LrCurve::cosine || options_.lr_schedule == LrCurve::linear) {
        identity["--lr-schedule"] += fmt::format(" over {} epochs", options_.epochs);
    }
    if (options_.lr_schedule == LrCurve::plateau) {  // what it watches decides the learning rate
        const Dataset* validation = workload_->validation_data();
        identity["--eval-every"] = std::to_string(options_.eval_every);
        identity["validation samples"] = std::to_string(validation == nullptr ? 0 : validation->size());
        identity["contents of the validation data"] = validation == nullptr ? "none" : validation->digest();
    }
    return identity;
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
        write_checkpoint(options_.checkpoint, {step_, evaluations_, world_.size(), schedule_->state()}, identity_,
                         tensors);
        marks_.note({{"checkpoint", options_.checkpoint}, {"updates", step_}});
    }
}

void Training::resume() {
    if (!options_.resume.empty() || !options_.checkpoint.empty()) {
        identity_ = make_identity();
    }
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
    if (world_.rank() != 0) {  // rank 0 has the sums of all
        sums_.losses.zero_();
        sums_.quality.zero_();
    } else if (checkpoint.position.ranks != world_.size()) {  // over which the mean will be taken
        sums_.losses.mul_(static_cast<double>(world_.size()) / static_cast<double>(checkpoint.position.ranks));
    }
    evaluations_ = checkpoint.position.evaluations;
    schedule_->restore(checkpoint.position.schedule);
    planned_ = step_ * options_.accumulate;
    marks_.note({{"resumed", checkpoint.path}, {"updates", step_}});
    tell(fmt::format("goes on after update {} of {}", step_, steps_));
}

}  // namespace joulemark::train
