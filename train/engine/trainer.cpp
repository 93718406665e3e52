// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "data/random.h"
#include "engine/device.h"
#include "engine/product.h"
#include "engine/safetensors.h"
#include "engine/streams.h"
#include "engine/weights.h"

namespace joulemark::train {
namespace {

constexpr int loader_prefetch = 3;
constexpr int most_loader_threads = 16;

int usable_cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// What is written after the last epoch must not fail only then.
void check_output(const std::string& path) {
    if (path.empty()) {
        return;
    }
    std::error_code error;
    const std::filesystem::path target = std::filesystem::absolute(path);
    if (std::filesystem::is_directory(target, error)) {
        throw environment_error("cannot write {}: it is a folder, a file is needed", path);
    }
    // A device or a pipe is written to, any other file replaced.
    const bool replaced =
        !std::filesystem::exists(target, error) || std::filesystem::is_regular_file(target, error);
    if (access((replaced ? target.parent_path() : target).c_str(), W_OK) != 0) {
        throw environment_error("cannot write {}: check that its folder exists and is writable", path);
    }
}

void prepare_checkpoint_folder(const std::string& path) {
    files::make_directories(path);
    if (access(path.c_str(), W_OK | X_OK) != 0) {
        throw environment_error("cannot write checkpoints to the folder {}: {}", path, std::strerror(errno));
    }
}

std::vector<torch::Tensor> tensors_of(const NamedTensors& named) {
    std::vector<torch::Tensor> tensors;
    for (const auto& [name, tensor] : named) {
        tensors.push_back(tensor);
    }
    return tensors;
}

/// What an outcome's means are over.
torch::Tensor count_of(const Outcome& outcome, const Batch& batch) {
    return outcome.quality_count.defined()
               ? outcome.quality_count
               : torch::full({}, static_cast<double>(batch.samples),
                             torch::TensorOptions(torch::kFloat64).device(outcome.loss.device()));
}

}  // namespace

Training::Training(const Model& model, const Options& options, World& world)
    : options_(options),
      world_(world),
      marks_(world.rank()),
      mllog_(options.mllog && world.rank() == 0),
      model_name_(model.name),
      shard_{world.rank(), world.size(), options.local_batch, options.accumulate} {
    threads_ = options.threads.value_or(default_threads(
        usable_cores(), static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), world.ranks().local_size));
    loader_threads_ = options.loader_threads.value_or(std::min(threads_, most_loader_threads));
    at::set_num_threads(threads_);
    at::set_num_interop_threads(1);

    world.together([&] { device_ = choose_device(options.device, options.precision, world.ranks()); });
    world.agree({{"--device", device_.str().substr(0, device_.str().find(':'))}});
    world.together([&] { world_.connect(device_); });
    world.together([&] { open_data(model); });
    world.together([&] { place_model(); });
    world.together([&] { resume(); });
    world.agree(shared_by_ranks());
    // Last, so that a run that is refused leaves the file of the one before alone.
    world.together([&] {
        if (world.rank() == 0 && !options.log_losses.empty()) {
            losses_.emplace(options.log_losses, step_ - step_ % steps_per_epoch_);
        }
    });
}

void Training::open_data(const Model& model) {
    torch::manual_seed(options_.seed);  // the same weights on every rank
    HyperParameters settings(options_.settings);
    workload_ = model.make(options_, settings, options_.sync_batch_norm ? world_.group() : nullptr);
    settings_ = settings.values();

    const auto available = static_cast<std::int64_t>(workload_->training_data().size());
    samples_per_epoch_ = options_.samples.value_or(available);
    if (samples_per_epoch_ > available) {
        throw bad_input("--samples {} is more than the {} samples of {}", samples_per_epoch_, available,
                        workload_->training_data().name());
    }
    steps_per_epoch_ = shard_.steps(samples_per_epoch_);
    if (steps_per_epoch_ == 0) {
        throw bad_input(
            "an epoch of {} samples is less than one global batch of {}: lower --local-batch or "
            "--global-batch",
            samples_per_epoch_, shard_.global_batch());
    }
    if (!product({steps_per_epoch_, options_.epochs, options_.accumulate})) {
        throw bad_input(
            "{} epochs of {} updates, each of {} backward passes, are more than 64 bits can count: lower "
            "--epochs",
            options_.epochs, steps_per_epoch_, options_.accumulate);
    }
    steps_ = steps_per_epoch_ * options_.epochs;
    if (options_.steps) {
        steps_ = std::min(steps_, *options_.steps);
    }
    if (!options_.weights.empty()) {
        load_weights(*workload_, options_.weights);
    }
    if (world_.rank() == 0) {
        check_output(options_.save_weights);
        check_output(options_.dump_gradients);
        if (!options_.checkpoint.empty()) {
            prepare_checkpoint_folder(options_.checkpoint);
        }
    }
}

void Training::place_model() {
    set_float32_mode(options_.precision);
    torch::nn::Module& module = workload_->module();
    module.to(device_);
    if (options_.channels_last) {
        for (torch::Tensor& parameter : module.parameters()) {
            if (parameter.dim() == 4) {
                parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
            }
        }
    }
    for (const torch::Tensor& parameter : module.parameters()) {
        parameters_ += parameter.numel();
    }
    optimizer_ = make_optimizer(options_.optimizer, tensors_of(trained_parameters(module)));
    if (options_.precision == Precision::fp16) {
        scaler_.emplace(device_);
    }
    schedule_.emplace(LrSchedule::Settings{
        .curve = options_.lr_schedule,
        .peak =
            scaled_lr(options_.lr, options_.lr_scaling, shard_.global_batch(), options_.defaults.lr_batch),
        .warmup_steps = std::llround(options_.lr_warmup_epochs * static_cast<double>(steps_per_epoch_)),
        .steps = steps_per_epoch_ * options_.epochs});
    const auto wide = torch::TensorOptions(torch::kFloat64).device(device_);
    const auto further = static_cast<std::int64_t>(workload_->further_names().size());
    sums_ = {torch::zeros({steps_per_epoch_}, wide), torch::zeros({2 + further}, wide)};
}

/// Rank 0's weights on every rank, and the reducer that averages gradients.
void Training::join_ranks() {
    if (!world_.group()) {
        return;
    }
    const std::vector<torch::Tensor> parameters = tensors_of(trained_parameters(workload_->module()));
    {
        const torch::NoGradGuard no_grad;
        world_.broadcast_from_0(parameters);
    }
    if (options_.reduction != Reduction::none) {
        reducer_ = make_reducer(parameters, world_.group(), options_.bucket_mib);
    }
    if (options_.reduction == Reduction::sum) {
        sum_instead_of_mean(*reducer_, world_.group());
    }
}

Loader::Settings Training::loader_settings(BadSamples bad_samples) const {
    Loader::Settings settings;
    settings.threads = loader_threads_;
    settings.prefetch = loader_prefetch;
    settings.bad_samples = bad_samples;
    settings.pin_memory = !device_.is_cpu();
    settings.report = [this](const std::string& sentence) {
        say("joulemark-train: " + sentence);
        marks_.note({{"skipped", sentence}});
    };
    return settings;
}

std::optional<BatchPlan> Training::plan_next_batch() {
    if (planned_ == steps_ * options_.accumulate) {
        return std::nullopt;
    }
    const std::int64_t passes_per_epoch = steps_per_epoch_ * options_.accumulate;
    const std::int64_t epoch = planned_ / passes_per_epoch;
    const std::int64_t pass = planned_ % passes_per_epoch;
    if (pass == 0 || order_.empty()) {
        order_ =
            permutation(workload_->training_data().size(), options_.seed, static_cast<std::uint64_t>(epoch));
    }
    ++planned_;
    const auto part = shard_.part(order_, pass);
    return BatchPlan{static_cast<std::uint64_t>(epoch), {part.begin(), part.end()}};
}

void Training::start_loader() {
    loader_ = std::make_unique<Loader>(
        workload_->training_data(), [this] { return plan_next_batch(); },
        loader_settings(BadSamples::replace));
}

ExitCode Training::run() {
    join_ranks();
    start_loader();
    announce();
    Feed feed(*loader_, device_);
    mllog_.begin("run_start");
    while (step_ < steps_) {
        const std::int64_t epoch = step_ / steps_per_epoch_;
        const Totals trained = train_epoch(feed, epoch);
        const std::optional<Totals> evaluated = evaluate(epoch);
        if (const auto watched = watched_loss(epoch, trained, evaluated)) {
            schedule_->watch(*watched);
        }
        report(epoch, trained, evaluated);
        for (const Totals* totals : {&trained, evaluated ? &*evaluated : nullptr}) {
            if (totals != nullptr && !(std::isfinite(totals->loss) && std::isfinite(totals->quality))) {
                return diverged(epoch, totals == &trained ? "training" : "validation",
                                std::isfinite(totals->loss) ? workload_->quality_name() : "loss");
            }
        }
        save_checkpoint();
    }
    if (!options_.save_weights.empty() && world_.rank() == 0) {
        write_safetensors(options_.save_weights, state_of(workload_->module()));
    }
    mllog_.end("run_stop", {{"status", "success"}});
    return ExitCode::ok;
}

/// What the plateau schedule is shown after an epoch. Losses of training and of validation are never compared
/// with each other: where there are evaluations only they count, and of them not the one that is made because
/// the run ends there, so that one which goes on from there is no other run.
std::optional<double> Training::watched_loss(std::int64_t epoch, const Totals& trained,
                                             const std::optional<Totals>& evaluated) const {
    if (inside_epoch()) {  // --steps may end the run there
        return std::nullopt;
    }
    if (!evaluates()) {
        return trained.loss;
    }
    return evaluated && evaluation_is_due(epoch) ? std::optional(evaluated->loss) : std::nullopt;
}

/// One epoch, or what a checkpoint has left of it: begins and ends where the device has nothing left to do.
Training::Totals Training::train_epoch(Feed& feed, std::int64_t epoch) {
    workload_->module().train();
    const std::int64_t end = std::min(steps_per_epoch_, steps_ - epoch * steps_per_epoch_);
    Totals totals;
    totals.updates = end - step_ % steps_per_epoch_;
    totals.local_samples = totals.updates * options_.local_batch * options_.accumulate;
    totals.samples = totals.local_samples * world_.size();
    if (!inside_epoch()) {
        sums_.losses.zero_();
        sums_.quality.zero_();
    }

    // Means are over whole epochs: a part, which takes less time, must not be taken for one.
    const std::string region = totals.updates == steps_per_epoch_ ? "epoch" : "partial_epoch";
    synchronise(device_);
    totals.begin_ns = Marks::now_ns();
    marks_.begin(region, epoch, totals.begin_ns);
    mllog_.begin(region + "_start", {{"epoch_num", epoch}});
    for (std::int64_t i = 0; i < totals.updates; ++i) {
        update(feed, totals);
        if (options_.log_every > 0 && step_ % options_.log_every == 0) {
            tell(fmt::format("update {} loss {}", step_,
                             sums_.losses[(step_ - 1) % steps_per_epoch_].item<float>()));
        }
        if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0 &&
            i + 1 < totals.updates) {
            save_checkpoint();
        }
    }
    synchronise(device_);
    totals.end_ns = Marks::now_ns();

    // Tokens and losses of all ranks and the quality in one collective and one read.
    const torch::Tensor tokens = torch::full({1}, totals.local_tokens, sums_.losses.options());
    const torch::Tensor all = torch::cat({tokens, sums_.losses, sums_.quality});
    world_.all_reduce_sum(all);
    const torch::Tensor on_host = all.to(torch::kCPU);
    totals.tokens = on_host[0].item<std::int64_t>();
    const torch::Tensor losses_and_quality = on_host.slice(0, 1);
    const torch::Tensor mean_losses = losses_and_quality.slice(0, 0, end) / world_.size();
    totals.loss = mean_losses.mean().item<double>();
    take_quality(losses_and_quality.slice(0, steps_per_epoch_), totals);
    marks_.end(region, epoch, totals.end_ns, region_counts(totals, "train_" + workload_->quality_name()));
    mllog_.end(region + "_stop", mllog_counts(totals, epoch));
    if (losses_) {
        for (std::int64_t i = 0; i < end; ++i) {
            losses_->add(mean_losses[i].item<double>());
        }
        losses_->flush();
    }
    return totals;
}

/// From sum, count, and the sums of the further metrics.
void Training::take_quality(const torch::Tensor& sums, Totals& totals) const {
    const torch::Tensor means = sums / sums[1];
    totals.quality = means[0].item<double>();
    for (std::int64_t i = 2; i < means.numel(); ++i) {
        totals.further.push_back(means[i].item<double>());
    }
}

/// Random numbers of an update (dropout) depend on its key alone, as all others do.
void Training::seed_generator() const {
    KeyedRandom random{options_.seed, dropout_stream, static_cast<std::uint64_t>(step_),
                       static_cast<std::uint64_t>(world_.rank())};
    at::Generator generator = at::globalContext().defaultGenerator(device_);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(random.bits());
}

/// Forward and backward, as often as is accumulated, the last time with the gradients' all-reduce; then the
/// optimiser's step.
void Training::update(Feed& feed, Totals& totals) {
    seed_generator();
    const torch::Tensor loss_of_update = sums_.losses[step_ % steps_per_epoch_];
    torch::Tensor weights;  // of this rank's passes together, where passes differ in it
    for (std::int64_t pass = 1; pass <= options_.accumulate; ++pass) {
        const std::optional<Batch> batch = feed.next();
        TORCH_CHECK(batch, "the loader ended before the epoch");
        Outcome outcome;
        {
            const Autocast autocast(device_, options_.precision);
            outcome = workload_->forward(*batch);
        }
        if (reducer_ && pass == options_.accumulate) {
            reducer_->prepare_for_backward({});
        }
        torch::Tensor loss =
            options_.accumulate == 1 ? outcome.loss : outcome.loss / static_cast<double>(options_.accumulate);
        if (outcome.weight.defined()) {
            loss = loss * outcome.weight;
            weights = weights.defined() ? weights + outcome.weight : outcome.weight;
        }
        (scaler_ ? scaler_->scaled(loss) : loss).backward();
        loss_of_update.add_(loss.detach());
        sums_.quality[0].add_(outcome.quality_sum);
        sums_.quality[1].add_(count_of(outcome, *batch));
        if (outcome.further_sums.defined()) {
            sums_.quality.slice(0, 2).add_(outcome.further_sums);
        }
        totals.local_tokens += batch->tokens;
    }
    if (weights.defined()) {
        divide_by_weights(weights, loss_of_update);
    }
    if (step_ == 0 && !options_.dump_gradients.empty()) {
        dump_gradients();
    }
    optimizer_->step(schedule_->lr(step_), scaler_ ? &*scaler_ : nullptr);
    optimizer_->clear_gradients();
    ++step_;
}

/// So far passes and ranks were averaged as if all counted the same: gradients and loss become the mean over
/// everything that was counted. The ranks' weights are added up on the device.
void Training::divide_by_weights(const torch::Tensor& weights, torch::Tensor loss_of_update) const {
    const torch::NoGradGuard no_grad;
    const torch::Tensor all = weights.to(torch::kFloat64) / static_cast<double>(options_.accumulate);
    world_.all_reduce_sum(all);
    const torch::Tensor factor = static_cast<double>(world_.size()) / all;
    at::_foreach_mul_(optimizer_->gradients(), factor.to(torch::kFloat32));
    loss_of_update.mul_(factor);
}

std::optional<Training::Totals> Training::evaluate(std::int64_t epoch) {
    if (!evaluates() || !(evaluation_is_due(epoch) || step_ == steps_)) {
        return std::nullopt;
    }
    const Dataset* data = workload_->validation_data();
    torch::nn::Module& module = workload_->module();
    module.eval();
    const torch::NoGradGuard no_grad;
    world_.broadcast_from_0(module.buffers());  // running statistics differ by rank; those of rank 0 count

    Totals totals;
    synchronise(device_);
    totals.begin_ns = Marks::now_ns();
    marks_.begin("eval", evaluations_, totals.begin_ns);
    mllog_.begin("eval_start", {{"epoch_num", epoch}});
    const std::vector<std::uint32_t> mine = evaluation_part(data->size(), world_.rank(), world_.size());
    auto next = mine.begin();
    Loader loader(
        *data,
        [&]() -> std::optional<BatchPlan> {
            if (next == mine.end()) {
                return std::nullopt;
            }
            const auto begin = next;
            next += std::min<std::ptrdiff_t>(options_.local_batch, mine.end() - begin);
            return BatchPlan{0, {begin, next}};
        },
        loader_settings(BadSamples::leave_out));
    Feed feed(loader, device_);
    // Loss, samples, tokens, then as Sums::quality.
    const auto further = static_cast<std::int64_t>(workload_->further_names().size());
    const torch::Tensor sums =
        torch::zeros({5 + further}, torch::TensorOptions(torch::kFloat64).device(device_));
    while (const std::optional<Batch> batch = feed.next()) {
        if (batch->samples == 0) {
            continue;
        }
        const Autocast autocast(device_, options_.precision);
        const Outcome outcome = workload_->forward(*batch);
        const torch::Tensor count = count_of(outcome, *batch);
        sums[0].add_(outcome.loss * count);
        sums[3].add_(outcome.quality_sum);
        sums[4].add_(count);
        if (outcome.further_sums.defined()) {
            sums.slice(0, 5).add_(outcome.further_sums);
        }
        totals.local_samples += batch->samples;
        totals.local_tokens += batch->tokens;
    }
    sums[1].fill_(totals.local_samples);
    sums[2].fill_(totals.local_tokens);
    synchronise(device_);
    totals.end_ns = Marks::now_ns();

    world_.all_reduce_sum(sums);
    const torch::Tensor on_host = sums.to(torch::kCPU);
    totals.samples = on_host[1].item<std::int64_t>();
    totals.tokens = on_host[2].item<std::int64_t>();
    if (totals.samples == 0) {
        throw bad_input("none of the {} validation samples of {} can be read", data->size(), data->name());
    }
    totals.loss = on_host[0].item<double>() / on_host[4].item<double>();
    take_quality(on_host.slice(0, 3), totals);
    marks_.end("eval", evaluations_++, totals.end_ns, region_counts(totals, workload_->quality_name()));
    mllog_.end("eval_stop", mllog_counts(totals, epoch));
    if (workload_->quality_name() == "top1_error") {
        mllog_.event("eval_accuracy", 1 - totals.quality, {{"epoch_num", epoch}});
    } else if (workload_->higher_is_better()) {
        mllog_.event("eval_accuracy", totals.quality, {{"epoch_num", epoch}});
    }
    return totals;
}

void Training::dump_gradients() const {
    if (world_.rank() != 0) {
        return;
    }
    NamedTensors gradients;
    for (const auto& [name, parameter] : trained_parameters(workload_->module())) {
        gradients.emplace_back(name, parameter.grad());
    }
    write_safetensors(options_.dump_gradients, gradients);
}

}  // namespace joulemark::train
