// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/optimizer_settings.h"
#include "engine/schedule.h"

namespace joulemark::train {

enum class Precision { fp32, tf32, bf16, fp16 };
std::string name_of(Precision precision);
std::string name_of(OptimizerKind kind);
std::string name_of(LrCurve curve);

enum class DeviceChoice { automatic, cpu, cuda };

/// How gradients of the ranks are combined. Only `mean` trains; the others exist so that tests can show they
/// are noticed.
enum class Reduction { mean, sum, none };

/// What a model is trained with unless the command line says otherwise.
struct Defaults {
    std::int64_t epochs = 1;
    std::int64_t local_batch = 1;
    std::int64_t image_size = 0;
    std::int64_t classes = 0;
    std::int64_t samples = 0;  ///< of the synthetic data set
    OptimizerKind optimizer = OptimizerKind::sgd;
    double lr = 0;
    std::int64_t lr_batch = 256;  ///< the global batch at which `lr` holds
    LrScaling lr_scaling = LrScaling::none;
    LrCurve lr_schedule = LrCurve::constant;
    double warmup_share = 0;  ///< of the run, see default_warmup_epochs
    double momentum = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
    std::optional<double> clip_norm = std::nullopt;
};

/// The command line of a training run, complete: defaults filled in, values in range.
struct Options {
    std::string model;
    Defaults defaults;                  ///< of the model
    std::vector<std::string> settings;  ///< --set NAME=VALUE
    std::string dataset = "synthetic";
    std::optional<std::int64_t> samples;
    std::int64_t eval_samples = 0;  ///< of the synthetic data set
    std::int64_t image_size = 0;
    std::optional<std::int64_t> classes;
    std::string vocab;

    std::int64_t epochs = 1;
    std::optional<std::int64_t> steps;  ///< ends the run after so many updates
    std::int64_t local_batch = 1;
    std::int64_t accumulate = 1;    ///< backward passes per update
    std::int64_t global_batch = 1;  ///< local batch x ranks x accumulate
    std::int64_t eval_every = 1;

    OptimizerSettings optimizer;
    double lr = 0;
    LrScaling lr_scaling = LrScaling::none;
    LrCurve lr_schedule = LrCurve::constant;
    double lr_warmup_epochs = 0;

    DeviceChoice device = DeviceChoice::automatic;
    Precision precision = Precision::fp32;
    bool channels_last = false;
    bool sync_batch_norm = false;
    std::uint64_t seed = 42;
    std::optional<int> threads;
    std::optional<int> loader_threads;

    std::int64_t log_every = 0;
    bool mllog = false;
    bool quiet = false;
    std::string log_losses;
    std::string dump_gradients;
    std::string weights;
    std::string checkpoint;             ///< folder, empty: none are written
    std::int64_t checkpoint_every = 0;  ///< updates, besides the end of every epoch
    std::string resume;                 ///< folder
    std::string save_weights;
    Reduction reduction = Reduction::mean;
    double bucket_mib = 25;  ///< gradients are all-reduced in buckets of this size
};

/// What decides how a run goes on, under the names in which the user knows it.
using Identity = std::map<std::string, std::string>;

/// The options among it: those that must be the same for a run that goes on from a checkpoint.
Identity identity_of(const Options& options);
/// The options that must be the same on all ranks of a job: these, and those that decide what the ranks do
/// together.
Identity shared_by_ranks(const Options& options);

/// An option that not every model can use.
struct Use {
    std::string option;
    bool synthetic_only = false;  ///< data that are read decide it themselves
};

/// A row of what --help and error sentences list.
struct KnownModel {
    std::string name;
    Defaults defaults;
    std::vector<Use> uses = {};
};

/// Parses a training command line for `ranks` ranks. Nothing when --help was asked for and printed.
/// Throws bad_input with one sentence: unknown model or option, one that is of no use to the model, value out
/// of range, global batch not divisible by ranks and accumulation.
std::optional<Options> parse_options(std::span<const std::string> words, std::span<const KnownModel> models,
                                     int ranks);

}  // namespace joulemark::train
