// SPDX-License-Identifier: Apache-2.0
#include "engine/options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "core/error.h"
#include "engine/option_checks.h"
#include "engine/product.h"
#include "engine/streams.h"

namespace joulemark::train {
namespace {

const std::map<std::string, Precision> precisions = {{"fp32", Precision::fp32},
                                                     {"tf32", Precision::tf32},
                                                     {"bf16", Precision::bf16},
                                                     {"fp16", Precision::fp16}};
const std::map<std::string, LrScaling> scalings = {
    {"linear", LrScaling::linear}, {"sqrt", LrScaling::square_root}, {"none", LrScaling::none}};
const std::map<std::string, LrCurve> curves = {{"constant", LrCurve::constant},
                                               {"plateau", LrCurve::plateau},
                                               {"cosine", LrCurve::cosine},
                                               {"linear", LrCurve::linear}};
const std::map<std::string, OptimizerKind> optimizers = {
    {"sgd", OptimizerKind::sgd}, {"adam", OptimizerKind::adam}, {"adamw", OptimizerKind::adamw}};
const std::map<std::string, Reduction> reductions = {
    {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}};

constexpr const char* example = R"(Examples:
  joulemark-train make-images images --classes 4
  joulemark-train resnet50 --dataset images --image-size 64 --local-batch 16 --epochs 3 --set width=16 --set blocks=1,1,1,1
  mpirun -n 2 joulemark-train resnet50 --dataset images --image-size 64 --global-batch 32 --epochs 3
  torchrun --nproc-per-node 4 --no-python joulemark-train resnet50 --dataset /data/imagenet --precision bf16 --channels-last

`joulemark-train square-wave` is no model but a load in bursts, for calibrating sensors.
Under `joulemark run` or `joulemark sweep` every epoch is marked and measured. docs/train.md explains all of it.)";

template <typename Value>
std::string name_in(const std::map<std::string, Value>& names, Value value) {
    return std::ranges::find(names, value, [](const auto& entry) { return entry.second; })->first;
}

const KnownModel& find_model(const std::string& name, std::span<const KnownModel> models) {
    const auto found = std::ranges::find(models, name, &KnownModel::name);
    if (found == models.end()) {
        std::vector<std::string> names;
        std::ranges::transform(models, std::back_inserter(names), &KnownModel::name);
        throw bad_input("there is no model '{}': the models are {} (joulemark-train --list)", name,
                        fmt::join(names, ", "));
    }
    return *found;
}

/// The model's use of an option, if it has any.
const Use* find_use(const KnownModel& model, const std::string& option) {
    const auto found = std::ranges::find(model.uses, option, &Use::option);
    return found == model.uses.end() ? nullptr : &*found;
}

/// An option that does nothing would be taken for a factor of the run.
void refuse_useless(const Options& options, const KnownModel& model, std::span<const KnownModel> models,
                    const std::function<bool(const std::string&)>& given) {
    for (const std::string option :
         {"--image-size", "--classes", "--vocab", "--channels-last", "--sync-bn"}) {
        if (given(option) && find_use(model, option) == nullptr) {
            std::vector<std::string> names;
            for (const KnownModel& other : models) {
                if (find_use(other, option) != nullptr) {
                    names.push_back(other.name);
                }
            }
            throw bad_input("{} is of no use to {}: it is for {}", option, model.name,
                            fmt::join(names, ", "));
        }
    }
    for (const std::string option : {"--eval-samples", "--image-size"}) {
        const Use* use = find_use(model, option);
        const bool synthetic_only = option == "--eval-samples" || (use != nullptr && use->synthetic_only);
        if (given(option) && synthetic_only && options.dataset != "synthetic") {
            throw bad_input("{} is for --dataset synthetic: of {} the data themselves decide it", option,
                            options.dataset);
        }
    }
    const bool sgd = options.optimizer.kind == OptimizerKind::sgd;
    for (const std::string option : {"--momentum", "--beta1", "--beta2", "--eps"}) {
        if (given(option) && sgd != (option == "--momentum")) {
            throw bad_input("{} is of no use to --optimizer {}: it is for {}", option,
                            name_of(options.optimizer.kind), sgd ? "adam, adamw" : "sgd");
        }
    }
}

/// Local and global batch from whichever was given.
void settle_batch(Options& options, std::optional<std::int64_t> global_batch, bool has_local, int ranks) {
    const std::int64_t parts = ranks * options.accumulate;
    const std::string accumulated =
        options.accumulate == 1 ? "" : fmt::format(" with --accumulate {}", options.accumulate);
    if (global_batch && *global_batch % parts != 0) {
        throw bad_input("the global batch {} cannot be divided among {} ranks{}: choose a multiple of {}",
                        *global_batch, ranks, accumulated, parts);
    }
    if (global_batch && !has_local) {
        options.local_batch = *global_batch / parts;
    }
    const auto whole = product({options.local_batch, parts});
    if (!whole) {
        throw bad_input("--local-batch {} on {} ranks{} makes a global batch that 64 bits cannot count",
                        options.local_batch, ranks, accumulated);
    }
    if (global_batch && *whole != *global_batch) {
        throw bad_input(
            "--local-batch {} on {} ranks{} makes a global batch of {}, not {}: give only one of the two",
            options.local_batch, ranks, accumulated, *whole, *global_batch);
    }
    options.global_batch = *whole;
}

}  // namespace

std::string name_of(Precision precision) {
    return name_in(precisions, precision);
}

std::string name_of(OptimizerKind kind) {
    return name_in(optimizers, kind);
}

std::string name_of(LrCurve curve) {
    return name_in(curves, curve);
}

Identity identity_of(const Options& options) {
    const OptimizerSettings& optimizer = options.optimizer;
    Identity identity = {
        {"MODEL", options.model},
        {"--epochs", std::to_string(options.epochs)},
        {"--image-size", std::to_string(options.image_size)},
        {"--seed", std::to_string(options.seed)},
        {"--global-batch", std::to_string(options.global_batch)},
        {"--precision", name_of(options.precision)},
        {"--sync-bn", options.sync_batch_norm ? "true" : "false"},
        {"--optimizer", name_of(optimizer.kind)},
        {"--lr", fmt::format("{}", scaled_lr(options.lr, options.lr_scaling, options.global_batch,
                                             options.defaults.lr_batch))},
        {"--lr-schedule", name_of(options.lr_schedule)},
        {"--lr-warmup-epochs", fmt::format("{}", options.lr_warmup_epochs)},
        {"--weight-decay", fmt::format("{}", optimizer.weight_decay)},
        {"--clip-norm", optimizer.clip_norm ? fmt::format("{}", *optimizer.clip_norm) : "none"}};
    if (optimizer.kind == OptimizerKind::sgd) {
        identity["--momentum"] = fmt::format("{}", optimizer.momentum);
    } else {
        identity["--beta1, --beta2, --eps"] =
            fmt::format("{}, {}, {}", optimizer.beta1, optimizer.beta2, optimizer.eps);
    }
    if (options.lr_schedule == LrCurve::cosine || options.lr_schedule == LrCurve::linear) {
        identity["--lr-schedule"] += fmt::format(" over {} epochs", options.epochs);
    }
    return identity;
}

Identity shared_by_ranks(const Options& options) {
    const auto given = [](bool is_given) { return is_given ? "given" : "not given"; };
    Identity shared = identity_of(options);
    shared.erase("--global-batch");  // follows from what is named here
    shared["--local-batch"] = std::to_string(options.local_batch);
    shared["--accumulate"] = std::to_string(options.accumulate);
    shared["--steps"] = options.steps ? std::to_string(*options.steps) : given(false);
    shared["--eval-every"] = std::to_string(options.eval_every);
    shared["--checkpoint"] = given(!options.checkpoint.empty());
    shared["--checkpoint-every"] = std::to_string(options.checkpoint_every);
    shared["--channels-last"] = given(options.channels_last);
    shared["--bucket-mib"] = fmt::format("{}", options.bucket_mib);
    shared["--reduction"] = name_in(reductions, options.reduction);
    return shared;
}

std::optional<Options> parse_options(std::span<const std::string> words, std::span<const KnownModel> models,
                                     int ranks) {
    Options options;
    std::optional<std::int64_t> epochs;
    std::optional<std::int64_t> local_batch;
    std::optional<std::int64_t> global_batch;
    std::optional<std::int64_t> image_size;
    std::optional<OptimizerKind> optimizer;
    std::optional<double> lr;
    std::optional<LrScaling> lr_scaling;
    std::optional<LrCurve> lr_schedule;
    std::optional<double> lr_warmup_epochs;
    std::optional<double> momentum;
    std::optional<double> beta1;
    std::optional<double> beta2;
    std::optional<double> eps;
    std::optional<double> weight_decay;
    std::optional<double> clip_norm;

    CLI::App app("Trains a model and marks its epochs for Joulemark.", "joulemark-train");
    app.footer(example);
    const auto count = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
    const auto count_or_zero = CLI::Range(std::int64_t{0}, std::int64_t{1} << 40);
    const CLI::Validator not_negative = number(0, 1e9);
    app.add_option("model", options.model, "which model; --list shows them")->type_name("MODEL")->required();
    bool answered_before = false;  // main has looked for these two already
    app.add_flag("--list", answered_before, "list the models: source, parameters, data set, defaults");
    app.add_flag("--version", answered_before, "print the version");

    auto* data = app.add_option_group("Data");
    data->add_option("--dataset", options.dataset,
                     "'synthetic', or a path: what each model reads is in docs/workloads.md (images: one "
                     "sub-folder per "
                     "class, or train/ and val/ with such)")
        ->type_name("NAME|PATH");
    data->add_option("--samples", options.samples, "training samples per epoch; default: the whole data set")
        ->check(count);
    data->add_option("--eval-samples", options.eval_samples,
                     "validation samples of the synthetic data set; default 0: no evaluation")
        ->check(count_or_zero);
    data->add_option("--image-size", image_size, "pixels of the square the network sees")
        ->check(CLI::Range(8, 4096));
    data->add_option("--classes", options.classes, "classes; default: the model's, or the folder's")
        ->check(CLI::Range(2, 1'000'000));
    data->add_option("--vocab", options.vocab, "vocabulary of a language model")->type_name("FILE");
    data->add_option("--loader-threads", options.loader_threads,
                     "threads that read and decode; default: as --threads, at most 16")
        ->check(CLI::Range(1, 1024));

    auto* run = app.add_option_group("Run");
    run->add_option("--epochs", epochs, "epochs")->check(count);
    run->add_option("--steps", options.steps, "end after so many updates, even inside an epoch")
        ->check(count);
    run->add_option("--local-batch", local_batch, "samples per rank and backward pass")->check(count);
    run->add_option("--accumulate", options.accumulate, "backward passes per update; default 1")
        ->check(count);
    run->add_option("--global-batch", global_batch,
                    "samples of all ranks per update, instead of --local-batch")
        ->check(count);
    run->add_option("--eval-every", options.eval_every,
                    "evaluate after every N epochs and the last; 0: never")
        ->check(count_or_zero);
    run->add_option("--seed", options.seed, "seed of weights, order and augmentation")->check(seed());
    run->add_option("--set", options.settings, "a setting of the model, NAME=VALUE; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);

    auto* optimiser = app.add_option_group("Optimiser");
    choice(*optimiser, "--optimizer", optimizer, optimizers, "default: the model's, as all of these");
    optimiser->add_option("--lr", lr, "learning rate at the model's reference batch")->check(not_negative);
    choice(*optimiser, "--lr-scaling", lr_scaling, scalings, "how it follows the global batch");
    choice(*optimiser, "--lr-schedule", lr_schedule, curves, "what follows the warm-up");
    optimiser
        ->add_option("--lr-warmup-epochs", lr_warmup_epochs,
                     "epochs of linear learning-rate warm-up; default: a share of the epochs, at most 5")
        ->check(not_negative);
    const auto below_1 = number(0, std::nextafter(1.0, 0.0));  // at 1 Adam divides by 0
    optimiser->add_option("--momentum", momentum, "momentum of SGD")->check(number(0, 1));
    optimiser->add_option("--beta1", beta1, "decay of Adam's mean")->check(below_1);
    optimiser->add_option("--beta2", beta2, "decay of Adam's mean square")->check(below_1);
    optimiser->add_option("--eps", eps, "added to Adam's denominator")->check(not_negative);
    optimiser->add_option("--weight-decay", weight_decay, "weight decay")->check(not_negative);
    optimiser->add_option("--clip-norm", clip_norm, "largest norm of all gradients together")
        ->check(number(1e-12, 1e9));

    auto* hardware = app.add_option_group("Hardware");
    choice(*hardware, "--device", options.device, devices, "default: cuda when there is one");
    choice(*hardware, "--precision", options.precision, precisions,
           "default fp32; bf16 and fp16 by autocast");
    hardware->add_flag("--channels-last", options.channels_last, "NHWC memory layout");
    hardware->add_flag("--sync-bn", options.sync_batch_norm, "batch-norm statistics over all ranks");
    hardware
        ->add_option("--threads", options.threads,
                     "CPU threads of this rank; default: its share of the cores")
        ->check(CLI::Range(1, 1024));

    auto* output = app.add_option_group("Output");
    output
        ->add_option("--log-every", options.log_every,
                     "print the loss every N updates (synchronises the device each time)")
        ->check(count_or_zero);
    output->add_flag("--mllog", options.mllog, "MLPerf log lines (:::MLLOG) on stdout");
    output->add_flag("-q,--quiet", options.quiet, "no progress on stderr");
    output->add_option("--log-losses", options.log_losses, "write the loss of every update, mean over ranks")
        ->type_name("FILE");
    output->add_option("--dump-gradients", options.dump_gradients, "write the gradients of the first update")
        ->type_name("FILE.safetensors");
    output->add_option("--weights", options.weights, "start from these weights, by state-dict name")
        ->type_name("FILE.safetensors");
    output->add_option("--save-weights", options.save_weights, "write the trained weights")
        ->type_name("FILE.safetensors");
    output->add_option("--checkpoint", options.checkpoint, "write the run's state there after every epoch")
        ->type_name("DIR");
    output->add_option("--checkpoint-every", options.checkpoint_every, "and after every N updates")
        ->check(count_or_zero);
    output->add_option("--resume", options.resume, "go on from the state that --checkpoint wrote")
        ->type_name("DIR");
    run->add_option("--bucket-mib", options.bucket_mib,
                    "size of the buckets in which gradients are all-reduced")
        ->type_name("MIB")
        ->check(number(0.001, 4096))
        ->capture_default_str();
    choice(app, "--reduction", options.reduction, reductions, "")->group("");

    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        print(app.help());
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-train --help", error.what());
    }

    const KnownModel& model = find_model(options.model, models);
    options.defaults = model.defaults;
    const Defaults& defaults = options.defaults;
    options.epochs = epochs.value_or(defaults.epochs);
    const Use* sized = find_use(model, "--image-size");
    const bool has_size = sized != nullptr && !(sized->synthetic_only && options.dataset != "synthetic");
    options.image_size = has_size ? image_size.value_or(defaults.image_size) : 0;
    options.local_batch = local_batch.value_or(defaults.local_batch);
    options.optimizer = {.kind = optimizer.value_or(defaults.optimizer),
                         .momentum = momentum.value_or(defaults.momentum),
                         .beta1 = beta1.value_or(defaults.beta1),
                         .beta2 = beta2.value_or(defaults.beta2),
                         .eps = eps.value_or(defaults.eps),
                         .weight_decay = weight_decay.value_or(defaults.weight_decay),
                         .clip_norm = clip_norm ? clip_norm : defaults.clip_norm};
    options.lr = lr.value_or(defaults.lr);
    options.lr_scaling = lr_scaling.value_or(defaults.lr_scaling);
    options.lr_schedule = lr_schedule.value_or(defaults.lr_schedule);
    options.lr_warmup_epochs =
        lr_warmup_epochs.value_or(default_warmup_epochs(defaults.warmup_share, options.epochs));
    const auto given = [&](const std::string& option) { return app.count(option) > 0; };
    for (const auto& [option, path] : {std::pair("--dataset", &options.dataset),
                                       {"--vocab", &options.vocab},
                                       {"--weights", &options.weights},
                                       {"--resume", &options.resume}}) {
        if (given(option)) {
            check_input(option, *path);
        }
    }
    for (const auto& [option, path] : {std::pair("--log-losses", &options.log_losses),
                                       {"--dump-gradients", &options.dump_gradients},
                                       {"--save-weights", &options.save_weights},
                                       {"--checkpoint", &options.checkpoint}}) {
        if (given(option)) {
            check_path(option, *path);
        }
    }
    refuse_useless(options, model, models, given);
    if (!options.resume.empty() && !options.weights.empty()) {
        throw bad_input("--resume brings its own weights: give either --resume or --weights");
    }
    if (options.checkpoint_every > 0 && options.checkpoint.empty()) {
        throw bad_input("--checkpoint-every needs --checkpoint DIR, the folder to write to");
    }
    settle_batch(options, global_batch, local_batch.has_value(), ranks);
    return options;
}

}  // namespace joulemark::train
