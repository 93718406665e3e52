// SPDX-License-Identifier: Apache-2.0
// What a training tells: to the meter, as MLPerf lines, and on stderr.
#include <cmath>

#include "core/csv.h"
#include "core/units.h"
#include "engine/streams.h"
#include "engine/trainer.h"

namespace joulemark::train {
namespace {

double samples_per_s(std::int64_t samples, std::int64_t begin_ns, std::int64_t end_ns) {
    return static_cast<double>(samples) / seconds(end_ns - begin_ns);
}

}  // namespace

void Training::announce() const {
    const auto device = device_.is_cpu() ? "cpu" : "cuda";
    nlohmann::json config = {{"workload", model_name_},
                             {"dataset", options_.dataset},
                             {"dataset_samples", workload_->training_data().size()},
                             {"local_batch", options_.local_batch},
                             {"global_batch", shard_.global_batch()},
                             {"ranks", world_.size()},
                             {"device", device},
                             {"precision", name_of(options_.precision)},
                             {"channels_last", options_.channels_last},
                             {"sync_bn", options_.sync_batch_norm},
                             {"epochs", options_.epochs},
                             {"updates_per_epoch", steps_per_epoch_},
                             {"accumulate", options_.accumulate},
                             {"optimizer", name_of(options_.optimizer.kind)},
                             {"lr", schedule_->state().rate},
                             {"lr_schedule", name_of(options_.lr_schedule)},
                             {"lr_warmup_epochs", options_.lr_warmup_epochs},
                             {"settings", options_.settings},
                             {"parameters", parameters_},
                             {"seed", options_.seed},
                             {"threads", threads_},
                             {"loader_threads", loader_threads_},
                             {"libtorch", TORCH_VERSION}};
    if (!device_.is_cpu()) {
        config["gpus"] = world_.size();
    }
    if (options_.image_size > 0) {
        config["image_size"] = options_.image_size;
    }
    if (const auto flops = workload_->flops_per_sample()) {
        config["flops_per_sample"] = *flops;
    }
    marks_.config(config);
    mllog_.event("global_batch_size", shard_.global_batch());
    mllog_.event("train_samples", samples_per_epoch_);
    mllog_.event("seed", options_.seed);
    mllog_.event("gradient_accumulation_steps", options_.accumulate);
    mllog_.event("opt_name", name_of(options_.optimizer.kind));
    mllog_.event("opt_base_learning_rate", schedule_->state().rate);
    const std::string passes = options_.accumulate == 1 ? "" : fmt::format(" x {}", options_.accumulate);
    for (const Dataset* data : {&workload_->training_data(), workload_->validation_data()}) {
        for (const std::string& problem : data != nullptr ? data->problems() : std::vector<std::string>()) {
            tell(problem);
            marks_.note({{"skipped", problem}});
        }
    }
    tell(fmt::format("{} ({} parameters), {} samples an epoch, {} rank{} x {}{} = {} a batch, {} on {}",
                     model_name_, parameters_, steps_per_epoch_ * shard_.global_batch(), world_.size(),
                     world_.size() == 1 ? "" : "s", options_.local_batch, passes, shard_.global_batch(),
                     name_of(options_.precision), device));
}

/// What the meter is told: counts of this rank, since it adds its ranks up; loss and quality of all.
RegionCounts Training::region_counts(const Totals& totals, const std::string& quality_name) const {
    RegionCounts counts;
    counts.samples = totals.local_samples;
    counts.updates = totals.updates;
    counts.tokens = totals.local_tokens;
    if (std::isfinite(totals.loss)) {
        counts.loss = totals.loss;
    }
    if (std::isfinite(totals.quality)) {
        counts.quality = Quality{quality_name, totals.quality, direction()};
    }
    return counts;
}

/// What MLPerf's lines say of an epoch or an evaluation: counts are those of all ranks.
nlohmann::json Training::mllog_counts(const Totals& totals, std::int64_t epoch) const {
    nlohmann::json counts = {
        {"epoch_num", epoch},
        {"samples", totals.samples},
        {"loss", totals.loss},
        {"lr", schedule_->lr(step_)},
        {"quality",
         {{"name", workload_->quality_name()}, {"value", totals.quality}, {"direction", direction()}}}};
    if (totals.updates > 0) {
        counts["updates"] = totals.updates;
    }
    if (totals.tokens > 0) {
        counts["tokens"] = totals.tokens;
    }
    return counts;
}

void Training::report(std::int64_t epoch, const Totals& trained, const std::optional<Totals>& evaluated) {
    const std::string part = trained.updates == steps_per_epoch_
                                 ? ""
                                 : fmt::format(" ({} of {} updates)", trained.updates, steps_per_epoch_);
    std::string line =
        fmt::format("epoch {}/{}{}  {:.2f} s  {:.1f} samples/s  loss {}  train {} {:.4f}", epoch + 1,
                    options_.epochs, part, seconds(trained.end_ns - trained.begin_ns),
                    samples_per_s(trained.samples, trained.begin_ns, trained.end_ns), csv::text(trained.loss),
                    workload_->quality_name(), trained.quality);
    if (evaluated) {
        line += fmt::format("  val loss {}  {} {:.4f}", csv::text(evaluated->loss), workload_->quality_name(),
                            evaluated->quality);
    }
    nlohmann::json note = {{"epoch", epoch}, {"lr", schedule_->lr(step_)}};
    for (std::size_t i = 0; evaluated && i < evaluated->further.size(); ++i) {
        const std::string name = workload_->further_names()[i];
        note[name] = evaluated->further[i];
        line += fmt::format("  {} {:.4f}", name, evaluated->further[i]);
    }
    tell(line);
    if (const std::int64_t damaged = count_damaged(); damaged > 0) {
        note["skipped_samples"] = damaged;
        tell(fmt::format("{} damaged sample{} skipped so far and replaced by the next good one", damaged,
                         damaged == 1 ? "" : "s"));
    }
    if (scaler_) {
        note["skipped_updates"] = scaler_->skipped().item<double>();
    }
    marks_.note(note);
}

/// Different samples, of all ranks together: in another epoch another rank meets the same one.
std::int64_t Training::count_damaged() const {
    const std::vector<std::uint32_t> mine = loader_->damaged();
    if (!world_.group()) {
        return std::ssize(mine);
    }
    const torch::Tensor any = torch::full({1}, std::ssize(mine), torch::TensorOptions(torch::kInt64)).to(device_);
    world_.all_reduce_sum(any);
    if (any.item<std::int64_t>() == 0) {
        return 0;
    }
    torch::Tensor met = torch::zeros({workload_->training_data().size()}, torch::kInt32);
    for (const std::uint32_t index : mine) {
        met.mutable_data_ptr<std::int32_t>()[index] = 1;
    }
    met = met.to(device_);
    world_.all_reduce_sum(met);
    return met.gt(0).sum().item<std::int64_t>();
}

ExitCode Training::diverged(std::int64_t epoch, const std::string& part, const std::string& what) const {
    mllog_.end("run_stop", {{"status", "aborted"}});
    if (world_.rank() == 0) {
        say(
            fmt::format("joulemark-train: the training has diverged: the {} {} of epoch {} is not a finite "
                        "number; lower --lr, or limit gradients with --clip-norm",
                        part, what, epoch + 1));
    }
    return ExitCode::check_failed;
}

void Training::tell(const std::string& line) const {
    if (world_.rank() == 0 && !options_.quiet) {
        say(line);
    }
}

}  // namespace joulemark::train
