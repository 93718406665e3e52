// SPDX-License-Identifier: Apache-2.0
#include "engine/options.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/error.h"

namespace joulemark::train {
namespace {

const std::map<std::string, Precision> precisions = {{"fp32", Precision::fp32},
                                                     {"tf32", Precision::tf32},
                                                     {"bf16", Precision::bf16},
                                                     {"fp16", Precision::fp16}};
const std::map<std::string, DeviceChoice> devices = {
    {"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}};
const std::map<std::string, LrScaling> scalings = {
    {"linear", LrScaling::linear}, {"sqrt", LrScaling::square_root}, {"none", LrScaling::none}};
const std::map<std::string, Reduction> reductions = {
    {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}};

constexpr const char* example = R"(Examples:
  joulemark-train make-images images --classes 4
  joulemark-train resnet50 --dataset images --image-size 64 --local-batch 16 --epochs 3 --set width=16 --set blocks=1,1,1,1
  mpirun -n 2 joulemark-train resnet50 --dataset images --image-size 64 --global-batch 32 --epochs 3
  torchrun --nproc-per-node 4 --no-python joulemark-train resnet50 --dataset /data/imagenet --precision bf16 --channels-last

Under `joulemark run` or `joulemark sweep` every epoch is marked and measured. docs/train.md explains all of it.)";

template <typename Value>
CLI::Option* choice(CLI::App& app, const std::string& name, Value& value,
                    const std::map<std::string, Value>& values, const std::string& help) {
    std::string names;
    for (const auto& [text, ignored] : values) {
        names += (names.empty() ? "" : "|") + text;
    }
    return app
        .add_option_function<std::string>(
            name,
            [&value, &values, name, names](const std::string& text) {
                const auto found = values.find(text);
                if (found == values.end()) {
                    throw bad_input("{} takes {}, not '{}'", name, names, text);
                }
                value = found->second;
            },
            help)
        ->type_name(names);
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

/// Local and global batch from whichever was given.
void settle_batch(Options& options, std::optional<std::int64_t> global_batch, bool has_local, int ranks) {
    if (!global_batch) {
        options.global_batch = options.local_batch * ranks;
        return;
    }
    if (*global_batch % ranks != 0) {
        throw bad_input("the global batch {} cannot be divided among {} ranks: choose a multiple of {}",
                        *global_batch, ranks, ranks);
    }
    if (has_local && options.local_batch * ranks != *global_batch) {
        throw bad_input(
            "--local-batch {} on {} ranks makes a global batch of {}, not {}: give only one of the two",
            options.local_batch, ranks, options.local_batch * ranks, *global_batch);
    }
    options.global_batch = *global_batch;
    options.local_batch = *global_batch / ranks;
}

}  // namespace

std::string name_of(Precision precision) {
    return std::ranges::find(precisions, precision, [](const auto& entry) { return entry.second; })->first;
}

std::optional<Options> parse_options(std::span<const std::string> words, std::span<const KnownModel> models,
                                     int ranks) {
    Options options;
    std::optional<std::int64_t> epochs;
    std::optional<std::int64_t> local_batch;
    std::optional<std::int64_t> global_batch;
    std::optional<std::int64_t> image_size;
    std::optional<double> lr;
    std::optional<double> momentum;
    std::optional<double> weight_decay;
    std::optional<double> lr_warmup_epochs;

    CLI::App app("Trains a model and marks its epochs for Joulemark.", "joulemark-train");
    app.footer(example);
    const auto count = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
    const auto count_or_zero = CLI::Range(std::int64_t{0}, std::int64_t{1} << 40);
    // Written so that NaN, which compares as neither, is refused.
    const CLI::Validator not_negative(
        [](std::string& text) {
            const auto value = csv::number(text);
            return value && *value >= 0 && *value <= 1e9 ? std::string() : text + " is not a number from 0 to 1e9";
        },
        "NUMBER");
    app.add_option("model", options.model, "which model; --list shows them")->type_name("MODEL")->required();
    bool answered_before = false;  // main has looked for these two already
    app.add_flag("--list", answered_before, "list the models: source, parameters, data set, defaults");
    app.add_flag("--version", answered_before, "print the version");

    auto* data = app.add_option_group("Data");
    data->add_option(
            "--dataset", options.dataset,
            "'synthetic', or a folder of images: one sub-folder per class, or train/ and val/ with such")
        ->type_name("NAME|DIR");
    data->add_option("--samples", options.samples, "training samples per epoch; default: the whole data set")
        ->check(count);
    data->add_option("--eval-samples", options.eval_samples,
                     "validation samples of the synthetic data set; default 0: no evaluation")
        ->check(count_or_zero);
    data->add_option("--image-size", image_size, "pixels of the square the network sees")
        ->check(CLI::Range(8, 4096));
    data->add_option("--classes", options.classes, "classes; default: the model's, or the folder's")
        ->check(CLI::Range(2, 1'000'000));
    data->add_option("--loader-threads", options.loader_threads,
                     "threads that read and decode; default: as --threads, at most 16")
        ->check(CLI::Range(1, 1024));

    auto* run = app.add_option_group("Run");
    run->add_option("--epochs", epochs, "epochs")->check(count);
    run->add_option("--steps", options.steps, "end after so many updates, even inside an epoch")
        ->check(count);
    run->add_option("--local-batch", local_batch, "samples per rank and update")->check(count);
    run->add_option("--global-batch", global_batch,
                    "samples of all ranks per update, instead of --local-batch")
        ->check(count);
    run->add_option("--eval-every", options.eval_every,
                    "evaluate after every N epochs and the last; 0: never")
        ->check(count_or_zero);
    run->add_option("--seed", options.seed, "seed of weights, order and augmentation");
    run->add_option("--set", options.settings, "a setting of the model, NAME=VALUE; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);

    auto* optimiser = app.add_option_group("Optimiser");
    optimiser->add_option("--lr", lr, "learning rate at a global batch of 256")->check(not_negative);
    choice(*optimiser, "--lr-scaling", options.lr_scaling, scalings,
           "how it follows the global batch; default linear");
    optimiser
        ->add_option("--lr-warmup-epochs", lr_warmup_epochs,
                     "epochs of linear learning-rate warm-up; default: 5% of the epochs, at most 5")
        ->check(not_negative);
    optimiser->add_option("--momentum", momentum, "momentum")->check(CLI::Range(0.0, 1.0));
    optimiser->add_option("--weight-decay", weight_decay, "weight decay")->check(not_negative);

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
    output->add_option("--save-weights", options.save_weights, "write the trained weights")
        ->type_name("FILE.safetensors");
    choice(app, "--reduction", options.reduction, reductions, "")->group("");

    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw bad_input("{}: see joulemark-train --help", error.what());
    }

    options.defaults = find_model(options.model, models).defaults;
    const Defaults& defaults = options.defaults;
    options.epochs = epochs.value_or(defaults.epochs);
    options.image_size = image_size.value_or(defaults.image_size);
    options.local_batch = local_batch.value_or(defaults.local_batch);
    options.lr = lr.value_or(defaults.lr);
    options.momentum = momentum.value_or(defaults.momentum);
    options.weight_decay = weight_decay.value_or(defaults.weight_decay);
    options.lr_warmup_epochs = lr_warmup_epochs.value_or(default_warmup_epochs(options.epochs));
    settle_batch(options, global_batch, local_batch.has_value(), ranks);
    return options;
}

}  // namespace joulemark::train
