// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <utility>

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/units.h"
#include "data/random.h"
#include "engine/device.h"
#include "engine/safetensors.h"
#include "engine/weights.h"

namespace joulemark::train {
namespace {

constexpr int loader_prefetch = 3;
constexpr int most_loader_threads = 16;

int usable_cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::ofstream open_output(const std::string& path) {
    std::ofstream file;
    if (!path.empty()) {
        file.open(path);
        if (!file) {
            throw environment_error("cannot write {}: check that its folder exists and is writable", path);
        }
    }
    return file;
}

/// What is written after the last epoch must not fail only then.
void check_folder_of(const std::string& path) {
    if (path.empty()) {
        return;
    }
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    if (access(folder.c_str(), W_OK) != 0) {
        throw environment_error("cannot write {}: check that its folder exists and is writable", path);
    }
}

/// Those that are trained: a module may hold others only for its published state's sake.
NamedTensors trained_parameters(const torch::nn::Module& module) {
    NamedTensors parameters;
    for (const auto& entry : module.named_parameters()) {
        if (entry.value().requires_grad()) {
            parameters.emplace_back(entry.key(), entry.value());
        }
    }
    return parameters;
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
    world.together([&] { world_.connect(device_); });
    world.together([&] { open_data(model); });
    world.together([&] { place_model(); });
    world.together([&] { resume(); });
}

void Training::open_data(const Model& model) {
    torch::manual_seed(options_.seed);  // the same weights on every rank
    HyperParameters settings(options_.settings);
    workload_ = model.make(options_, settings, options_.sync_batch_norm ? world_.group() : nullptr);

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
    steps_ = steps_per_epoch_ * options_.epochs;
    if (options_.steps) {
        steps_ = std::min(steps_, *options_.steps);
    }
    if (!options_.weights.empty()) {
        load_weights(*workload_, options_.weights);
    }
    if (world_.rank() == 0) {
        losses_file_ = open_output(options_.log_losses);
        check_folder_of(options_.save_weights);
        if (!options_.checkpoint.empty()) {
            files::make_directories(options_.checkpoint);
            check_folder_of(options_.checkpoint + "/.");
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
        fmt::print(stderr, "joulemark-train: {}\n", sentence);
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

void Training::run() {
    join_ranks();
    start_loader();
    announce();
    Feed feed(*loader_, device_);
    mllog_.begin("run_start");
    while (step_ < steps_) {
        const std::int64_t epoch = step_ / steps_per_epoch_;
        const Totals trained = train_epoch(feed, epoch);
        const std::optional<Totals> evaluated = evaluate(epoch);
        if (!inside_epoch()) {  // --steps may end the run there
            schedule_->epoch_ended(evaluated ? evaluated->loss : trained.loss);
        }
        report(epoch, trained, evaluated);
        save_checkpoint();
    }
    if (!options_.save_weights.empty() && world_.rank() == 0) {
        write_safetensors(options_.save_weights, state_of(workload_->module()));
    }
    mllog_.end("run_stop", {{"status", "success"}});
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

    synchronise(device_);
    totals.begin_ns = Marks::now_ns();
    marks_.begin("epoch", epoch, totals.begin_ns);
    mllog_.begin("epoch_start", {{"epoch_num", epoch}});
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
    marks_.end("epoch", epoch, totals.end_ns, region_counts(totals, "train_" + workload_->quality_name()));
    mllog_.end("epoch_stop", mllog_counts(totals, epoch));
    for (std::int64_t i = 0; losses_file_.is_open() && i < end; ++i) {
        losses_file_ << csv::text(mean_losses[i].item<double>()) << '\n';
    }
    losses_file_.flush();
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
        const torch::Tensor loss =
            options_.accumulate == 1 ? outcome.loss : outcome.loss / static_cast<double>(options_.accumulate);
        (scaler_ ? scaler_->scaled(loss) : loss).backward();
        loss_of_update.add_(loss.detach());
        sums_.quality[0].add_(outcome.quality_sum);
        sums_.quality[1].add_(count_of(outcome, *batch));
        if (outcome.further_sums.defined()) {
            sums_.quality.slice(0, 2).add_(outcome.further_sums);
        }
        totals.local_tokens += batch->tokens;
    }
    if (step_ == 0 && !options_.dump_gradients.empty()) {
        dump_gradients();
    }
    optimizer_->step(schedule_->lr(step_), scaler_ ? &*scaler_ : nullptr);
    optimizer_->clear_gradients();
    ++step_;
}

std::optional<Training::Totals> Training::evaluate(std::int64_t epoch) {
    const Dataset* data = workload_->validation_data();
    const bool last = step_ == steps_;
    if (data == nullptr || options_.eval_every == 0 || ((epoch + 1) % options_.eval_every != 0 && !last)) {
        return std::nullopt;
    }
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

Identity Training::identity() const {
    const OptimizerSettings& optimizer = options_.optimizer;
    std::vector<std::string> settings = options_.settings;
    std::ranges::sort(settings);
    Identity identity = {
        {"MODEL", model_name_},
        {"--set", fmt::format("{}", fmt::join(settings, " "))},
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
        {"samples an epoch", std::to_string(samples_per_epoch_)}};
    if (optimizer.kind == OptimizerKind::sgd) {
        identity["--momentum"] = fmt::format("{}", optimizer.momentum);
    } else {
        identity["--beta1, --beta2, --eps"] =
            fmt::format("{}, {}, {}", optimizer.beta1, optimizer.beta2, optimizer.eps);
    }
    if (options_.lr_schedule == LrCurve::cosine || options_.lr_schedule == LrCurve::linear) {
        identity["--epochs"] = std::to_string(options_.epochs);
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
        write_checkpoint(options_.checkpoint, {step_, evaluations_, schedule_->state()}, identity(), tensors);
        marks_.note({{"checkpoint", options_.checkpoint}, {"updates", step_}});
    }
}

void Training::resume() {
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
    check_identity(checkpoint, identity());
    if (world_.rank() != 0) {  // rank 0 has the sums of all
        sums_.losses.zero_();
        sums_.quality.zero_();
    }
    evaluations_ = checkpoint.position.evaluations;
    schedule_->restore(checkpoint.position.schedule);
    planned_ = step_ * options_.accumulate;
    marks_.note({{"resumed", checkpoint.path}, {"updates", step_}});
    tell(fmt::format("goes on after update {} of {}", step_, steps_));
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
