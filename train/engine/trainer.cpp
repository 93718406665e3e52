// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/units.h"
#include "data/random.h"
#include "engine/device.h"
#include "engine/safetensors.h"
#include "engine/weights.h"

namespace joulemark::train {
namespace {

constexpr int loader_prefetch = 3;
constexpr int most_loader_threads = 16;
constexpr std::uint64_t dropout_stream = 16;  // of random numbers; data sets have streams of their own

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

/// What an outcome's means are over.
torch::Tensor count_of(const Outcome& outcome, const Batch& batch) {
    return outcome.quality_count.defined() ? outcome.quality_count
                                           : torch::full({}, batch.samples, outcome.loss.options());
}

/// Without those that a module holds only for its published state's sake.
std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& module) {
    std::vector<torch::Tensor> parameters = module.parameters();
    std::erase_if(parameters, [](const torch::Tensor& parameter) { return !parameter.requires_grad(); });
    return parameters;
}

double samples_per_s(std::int64_t samples, std::int64_t begin_ns, std::int64_t end_ns) {
    return static_cast<double>(samples) / seconds(end_ns - begin_ns);
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
    optimizer_ = make_optimizer(options_.optimizer, trained_parameters(module));
    if (options_.precision == Precision::fp16) {
        scaler_.emplace(device_);
    }
    schedule_.emplace(LrSchedule::Settings{
        .curve = options_.lr_schedule,
        .peak = scaled_lr(options_.lr, options_.lr_scaling, shard_.global_batch(), options_.defaults.lr_batch),
        .warmup_steps = std::llround(options_.lr_warmup_epochs * static_cast<double>(steps_per_epoch_)),
        .steps = steps_per_epoch_ * options_.epochs});
}

/// Rank 0's weights on every rank, and the reducer that averages gradients.
void Training::join_ranks() {
    if (!world_.group()) {
        return;
    }
    const std::vector<torch::Tensor> parameters = trained_parameters(workload_->module());
    {
        const torch::NoGradGuard no_grad;
        world_.broadcast_from_0(parameters);
    }
    if (options_.reduction != Reduction::none) {
        reducer_ = make_reducer(parameters, world_.group());
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
    if (pass == 0) {
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
    for (std::int64_t epoch = 0; step_ < steps_; ++epoch) {
        const Totals trained = train_epoch(feed, epoch);
        const std::optional<Totals> evaluated = evaluate(epoch);
        schedule_->epoch_ended(evaluated ? evaluated->loss : trained.loss);
        report(epoch, trained, evaluated);
    }
    if (!options_.save_weights.empty() && world_.rank() == 0) {
        write_safetensors(options_.save_weights, state_of(workload_->module()));
    }
    mllog_.end("run_stop", {{"status", "success"}});
}

/// One epoch: begins and ends where the device has nothing left to do.
Training::Totals Training::train_epoch(Feed& feed, std::int64_t epoch) {
    workload_->module().train();
    const std::int64_t updates = std::min(steps_per_epoch_, steps_ - step_);
    const auto further = static_cast<std::int64_t>(workload_->further_names().size());
    const auto wide = torch::TensorOptions(torch::kFloat64).device(device_);
    const Sums sums = {torch::zeros({updates}, wide), torch::zeros({2 + further}, wide)};
    Totals totals;
    totals.updates = updates;
    totals.local_samples = updates * options_.local_batch * options_.accumulate;
    totals.samples = totals.local_samples * world_.size();

    synchronise(device_);
    totals.begin_ns = Marks::now_ns();
    marks_.begin("epoch", epoch, totals.begin_ns);
    mllog_.begin("epoch_start", {{"epoch_num", epoch}});
    for (std::int64_t i = 0; i < updates; ++i) {
        update(feed, sums, totals);
        if (options_.log_every > 0 && step_ % options_.log_every == 0) {
            tell(fmt::format("update {} loss {}", step_, sums.losses[i].item<float>()));
        }
    }
    synchronise(device_);
    totals.end_ns = Marks::now_ns();

    // Losses of all ranks and the quality in one collective and one read.
    const torch::Tensor all = torch::cat({sums.losses, sums.quality});
    world_.all_reduce_sum(all);
    const torch::Tensor on_host = all.to(torch::kCPU);
    const torch::Tensor mean_losses = on_host.slice(0, 0, updates) / world_.size();
    totals.loss = mean_losses.mean().item<double>();
    take_quality(on_host.slice(0, updates), totals);
    marks_.end("epoch", epoch, totals.end_ns, region_counts(totals, "train_" + workload_->quality_name()));
    mllog_.end("epoch_stop", mllog_counts(totals, epoch));
    for (std::int64_t i = 0; losses_file_.is_open() && i < updates; ++i) {
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
void Training::update(Feed& feed, const Sums& sums, Totals& totals) {
    seed_generator();
    const torch::Tensor loss_of_update = sums.losses[step_ % steps_per_epoch_];
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
        const torch::Tensor loss = options_.accumulate == 1
                                       ? outcome.loss
                                       : outcome.loss / static_cast<double>(options_.accumulate);
        (scaler_ ? scaler_->scaled(loss) : loss).backward();
        loss_of_update.add_(loss.detach());
        sums.quality[0].add_(outcome.quality_sum);
        sums.quality[1].add_(count_of(outcome, *batch));
        if (outcome.further_sums.defined()) {
            sums.quality.slice(0, 2).add_(outcome.further_sums);
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
    // Loss, samples, then as Sums::quality.
    const auto further = static_cast<std::int64_t>(workload_->further_names().size());
    const torch::Tensor sums =
        torch::zeros({4 + further}, torch::TensorOptions(torch::kFloat64).device(device_));
    while (const std::optional<Batch> batch = feed.next()) {
        if (batch->samples == 0) {
            continue;
        }
        const Autocast autocast(device_, options_.precision);
        const Outcome outcome = workload_->forward(*batch);
        const torch::Tensor count = count_of(outcome, *batch);
        sums[0].add_(outcome.loss * count);
        sums[2].add_(outcome.quality_sum);
        sums[3].add_(count);
        if (outcome.further_sums.defined()) {
            sums.slice(0, 4).add_(outcome.further_sums);
        }
        totals.local_samples += batch->samples;
        totals.local_tokens += batch->tokens;
    }
    sums[1].fill_(totals.local_samples);
    synchronise(device_);
    totals.end_ns = Marks::now_ns();

    world_.all_reduce_sum(sums);
    const torch::Tensor on_host = sums.to(torch::kCPU);
    totals.samples = on_host[1].item<std::int64_t>();
    if (totals.samples == 0) {
        throw bad_input("none of the {} validation samples of {} can be read", data->size(), data->name());
    }
    totals.loss = on_host[0].item<double>() / on_host[3].item<double>();
    take_quality(on_host.slice(0, 2), totals);
    marks_.end("eval", evaluations_++, totals.end_ns, region_counts(totals, workload_->quality_name()));
    mllog_.end("eval_stop", mllog_counts(totals, epoch));
    if (workload_->quality_name() == "top1_error") {
        mllog_.event("eval_accuracy", 1 - totals.quality, {{"epoch_num", epoch}});
    }
    return totals;
}

void Training::dump_gradients() const {
    if (world_.rank() != 0) {
        return;
    }
    NamedTensors gradients;
    for (const auto& entry : workload_->module().named_parameters()) {
        if (entry.value().requires_grad()) {
            gradients.emplace_back(entry.key(), entry.value().grad());
        }
    }
    write_safetensors(options_.dump_gradients, gradients);
}

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
    tell(fmt::format("{} ({} parameters), {} samples an epoch, {} rank{} x {}{} = {} a batch, {} on {}",
                     model_name_, parameters_, steps_per_epoch_ * shard_.global_batch(), world_.size(),
                     world_.size() == 1 ? "" : "s", options_.local_batch, passes, shard_.global_batch(),
                     name_of(options_.precision), device));
}

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

/// What MLPerf's lines say of an epoch or an evaluation; counts are those of all ranks where they are known.
nlohmann::json Training::mllog_counts(const Totals& totals, std::int64_t epoch) const {
    nlohmann::json counts = {{"epoch_num", epoch},
                             {"samples", totals.samples},
                             {"loss", totals.loss},
                             {"lr", schedule_->lr(step_)},
                             {"quality",
                              {{"name", workload_->quality_name()},
                               {"value", totals.quality},
                               {"direction", direction()}}}};
    if (totals.updates > 0) {
        counts["updates"] = totals.updates;
    }
    if (totals.local_tokens > 0) {
        counts["tokens_of_rank_0"] = totals.local_tokens;
    }
    return counts;
}

void Training::report(std::int64_t epoch, const Totals& trained, const std::optional<Totals>& evaluated) {
    std::string line = fmt::format("epoch {}/{}  {:.2f} s  {:.1f} samples/s  loss {}  train {} {:.4f}",
                                   epoch + 1, options_.epochs, seconds(trained.end_ns - trained.begin_ns),
                                   samples_per_s(trained.samples, trained.begin_ns, trained.end_ns),
                                   csv::text(trained.loss), workload_->quality_name(), trained.quality);
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
    if (const std::int64_t skipped = loader_->skipped(); skipped > 0) {
        note["skipped_samples"] = skipped;
        tell(fmt::format("{} damaged samples skipped so far and replaced by the next good ones", skipped));
    }
    if (scaler_) {
        note["skipped_updates"] = scaler_->skipped().item<double>();
    }
    marks_.note(note);
    if (!std::isfinite(trained.loss)) {
        tell("the loss is no longer a finite number: the training has diverged; lower --lr");
    }
}

void Training::tell(const std::string& line) const {
    if (world_.rank() == 0 && !options_.quiet) {
        fmt::print(stderr, "{}\n", line);
    }
}

}  // namespace joulemark::train
