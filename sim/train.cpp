// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/units.h"
#include "sim/commands.h"
#include "sim/marks.h"
#include "sim/truth.h"
#include "sim/work.h"

namespace joulemark::sim {
namespace {

using nlohmann::json;

struct TrainLine {
    std::string workload = "resnet50", truth;
    unsigned gpus = 0;
    std::uint64_t local_batch = 0, global_batch = 0, epochs = 1, warmup_epochs = 0, samples = 0, seed = 0;
};

/// A truth is given as JSON text, or as the path of a file with it.
Truth read_truth(const std::string& given, const Profile& profile) {
    if (given.empty()) {
        return Truth(profile);
    }
    if (given.starts_with('{')) {
        return parse_truth(given, "--truth", profile);
    }
    const auto text = files::read(given);
    if (!text) {
        throw bad_input("--truth: cannot read the file {}", given);
    }
    return parse_truth(*text, given, profile);
}

std::vector<unsigned> choose_gpus(const State& state, unsigned wanted) {
    std::vector<unsigned> gpus = visible_gpus(state);
    if (gpus.empty()) {
        throw environment_error(
            "CUDA_VISIBLE_DEVICES leaves no simulated GPU visible; unset it or name some of {}",
            state.gpus());
    }
    if (wanted > gpus.size()) {
        throw bad_input("--gpus {}: only {} simulated GPUs are visible", wanted, gpus.size());
    }
    if (wanted > 0) {
        gpus.resize(wanted);
    }
    return gpus;
}

std::uint64_t choose_local_batch(const TrainLine& line, std::size_t gpus) {
    if (line.global_batch == 0) {
        return line.local_batch > 0 ? line.local_batch : 128;
    }
    if (line.global_batch % gpus != 0) {
        throw bad_input("--global-batch {} cannot be divided among {} GPUs", line.global_batch, gpus);
    }
    return line.global_batch / gpus;
}

class Training {
  public:
    explicit Training(const TrainLine& line)
        : line_(line),
          state_(state_of_environment()),
          gpus_(choose_gpus(state_, line.gpus)),
          truth_(read_truth(line.truth, state_.profile())),
          local_batch_(choose_local_batch(line, gpus_.size())),
          samples_(line.samples > 0 ? line.samples
                                    : static_cast<std::uint64_t>(std::llround(truth_.samples))),
          run_(state_.next_run()),
          job_(state_, gpus_),
          marks_(!state_.real_clock()) {}

    void run() {
        marks_.send({{"event", "config"},
                     {"rank", 0},
                     {"t", job_.now_ns()},
                     {"data",
                      {{"workload", line_.workload},
                       {"gpus", gpus_.size()},
                       {"local_batch", local_batch_},
                       {"global_batch", global_batch()},
                       {"dataset_samples", samples_},
                       {"epochs", line_.epochs},
                       {"warmup_epochs", line_.warmup_epochs},
                       {"train_seed", line_.seed},
                       {"simulated", true}}}});
        for (std::uint64_t epoch = 0; epoch < line_.epochs; ++epoch) {
            run_epoch(epoch);
        }
    }

  private:
    std::uint64_t global_batch() const { return local_batch_ * gpus_.size(); }

    Operating operating(const Limits& limits) const {
        return {static_cast<double>(gpus_.size()), limits.power_cap_w, limits.sm_clock_mhz,
                static_cast<double>(local_batch_), static_cast<double>(samples_)};
    }

    void run_epoch(std::uint64_t epoch) {
        const std::int64_t start = job_.now_ns();
        marks_.send({{"event", "begin"}, {"name", "epoch"}, {"index", epoch}, {"rank", 0}, {"t", start}});

        Noise with = noise(truth_, mix(state_.seed(), line_.seed), run_, epoch);
        if (epoch < line_.warmup_epochs) {
            with.time *= truth_.warmup_factor;
        }
        for (const Phase& phase : phases(static_cast<double>(gpus_.size()))) {
            job_.run([&](const Limits& limits) { return pace(phase, limits, with); });
        }

        const Quality reached = quality(truth_, static_cast<double>(global_batch()), line_.seed, epoch);
        const std::int64_t end = job_.now_ns();
        marks_.send(
            {{"event", "end"},
             {"name", "epoch"},
             {"index", epoch},
             {"rank", 0},
             {"t", end},
             {"samples", samples_},
             {"updates", (samples_ + global_batch() - 1) / global_batch() * gpus_.size()},
             {"loss", reached.loss},
             {"quality", {{"name", "top1_error"}, {"value", reached.top1_error}, {"direction", "lower"}}}});
        fmt::print("epoch {}: {:.3f} s (simulated), loss {:.4f}, top-1 error {:.4f}\n", epoch,
                   seconds(end - start), reached.loss, reached.top1_error);
        std::fflush(stdout);
    }

    Job::Pace pace(const Phase& phase, const Limits& limits, const Noise& with) const {
        const Profile& profile = state_.profile();
        const Operating at = operating(limits);
        const auto load = [this, &profile, phase, with, at](unsigned gpu) {
            Operating own = at;
            own.power_cap_w = state_.limit_w(gpu);
            Operating free = at;
            free.power_cap_w = profile.limit_max_w;
            const double power = phase_power_w(truth_, profile, own, phase, with);
            return Load{.power_w = power,
                        .busy = phase.busy_pct / 100,
                        .sm_clock_mhz = at.sm_clock_mhz,
                        .memory_bytes = memory_bytes(),
                        .capped = power < phase_power_w(truth_, profile, free, phase, with)};
        };
        return {phase.fraction * epoch_time_s(truth_, profile, at, with), load};
    }

    /// Roughly ResNet-50 at 224 pixels in single precision: activations dominate.
    std::uint64_t memory_bytes() const {
        return (std::uint64_t{1200} << 20) + local_batch_ * (std::uint64_t{90} << 20);
    }

    TrainLine line_;
    State& state_;
    std::vector<unsigned> gpus_;
    Truth truth_;
    std::uint64_t local_batch_, samples_, run_;
    Job job_;
    Marks marks_;
};

void train(const TrainLine& line) {
    if (line.epochs == 0) {
        throw bad_input("--epochs has to be at least 1");
    }
    if (line.warmup_epochs >= line.epochs) {
        throw bad_input("--warmup-epochs {} leaves no full epoch among {}", line.warmup_epochs, line.epochs);
    }
    Training(line).run();
}

}  // namespace

void add_train(CLI::App& app) {
    auto line = std::make_shared<TrainLine>();
    CLI::App* command =
        app.add_subcommand("train", "Trains on simulated GPUs: speed and power follow the ground truth");
    command->add_option("--gpus", line->gpus, "How many of the visible GPUs (default: all)");
    auto* local = command->add_option("--local-batch", line->local_batch, "Per GPU (default: 128)");
    command->add_option("--global-batch", line->global_batch, "Over all GPUs")->excludes(local);
    command->add_option("--epochs", line->epochs, "All of them, warm-up included")->capture_default_str();
    command->add_option("--warmup-epochs", line->warmup_epochs, "How many of them are warm-up")
        ->capture_default_str();
    command->add_option("--samples", line->samples, "Of the data set (default: the truth's)");
    command->add_option("--seed", line->seed, "Of training")->capture_default_str();
    command->add_option("--workload", line->workload, "Its name in the results")->capture_default_str();
    command->add_option("--truth", line->truth,
                        "Ground truth: JSON, or a file of it; docs/simulation.md lists the keys");
    command->footer(
        "Example: JOULEMARK_SIM=gpus.sim joulemark-sim train --gpus 4 --epochs 3 --truth '{\"gpu_exponent\": "
        "0.85}'");
    command->callback([line] { train(*line); });
}

}  // namespace joulemark::sim
