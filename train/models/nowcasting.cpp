// SPDX-License-Identifier: Apache-2.0
#include "models/nowcasting.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "core/error.h"
#include "data/storms.h"
#include "engine/flops.h"

namespace joulemark::train {
namespace {

// Mean and deviation of SEVIR's vil images, as its authors' nowcasting code scales them.
constexpr std::int64_t most_halvings = 12;  // of 4096 pixels
constexpr double mean_vil = 33.44;
constexpr double deviation_vil = 47.54;

struct StormData {
    std::unique_ptr<StormDataset> training;
    std::unique_ptr<StormDataset> validation;  ///< null where there is none
};

StormData open_storms(const Options& options, const StormFrames& frames) {
    StormData data;
    if (options.dataset != "synthetic") {
        const std::filesystem::path path = options.dataset;
        std::error_code error;
        const bool split = std::filesystem::is_directory(path / "train", error);
        data.training = std::make_unique<SevirStorms>(split ? path / "train" : path, frames);
        if (split && std::filesystem::is_directory(path / "val", error)) {
            data.validation = std::make_unique<SevirStorms>(path / "val", frames);
            if (data.validation->height() != data.training->height() ||
                data.validation->width() != data.training->width()) {
                throw bad_input("the images of {} are of another size than those for training",
                                (path / "val").string());
            }
        }
        return data;
    }
    const std::int64_t samples = options.samples.value_or(options.defaults.samples);
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (samples > most || options.eval_samples > most) {
        throw bad_input("the synthetic data set holds at most {} samples", most);
    }
    const auto make = [&](std::int64_t size, Split split) {
        return std::make_unique<SyntheticStorms>(static_cast<std::uint32_t>(size), options.image_size, frames,
                                                 options.seed, split);
    };
    data.training = make(samples, Split::training);
    data.validation = options.eval_samples > 0 ? make(options.eval_samples, Split::validation) : nullptr;
    return data;
}

class Nowcasting final : public Workload {
  public:
    Nowcasting(UNet network, const UNetConfig& config, StormData data)
        : network_(std::move(network)), inputs_(config.inputs), data_(std::move(data)) {}

    torch::nn::Module& module() override { return *network_; }
    const Dataset& training_data() const override { return *data_.training; }
    const Dataset* validation_data() const override { return data_.validation.get(); }
    std::string quality_name() const override { return "vil_mae"; }
    std::optional<double> flops_per_sample() const override {
        UNet network = network_;
        const StormDataset& images = *data_.training;
        const double forward = forward_flops(*network, [&] {
            network(torch::zeros({1, inputs_, images.height(), images.width()},
                                 network->parameters().front().device()));
        });
        return training_per_forward * forward;
    }

    Outcome forward(const Batch& batch) override {
        if (!format_) {
            format_ = network_->parameters().front().suggest_memory_format();
        }
        // [B, H, W, T] to [B, T, H, W], scaled.
        const torch::Tensor frames =
            batch.inputs.front().permute({0, 3, 1, 2}).to(torch::kFloat32).sub_(mean_vil).div_(deviation_vil);
        const torch::Tensor seen = frames.slice(1, 0, inputs_).contiguous(*format_);
        const torch::Tensor wanted = frames.slice(1, inputs_);
        const torch::Tensor forecast = network_(seen).to(torch::kFloat32);
        const torch::Tensor error = torch::l1_loss(forecast.detach(), wanted) * deviation_vil;
        return {.loss = torch::mse_loss(forecast, wanted), .quality_sum = error * batch.samples};
    }

  private:
    UNet network_;
    std::int64_t inputs_;
    StormData data_;
    std::optional<at::MemoryFormat> format_;
};

}  // namespace

UNetConfig unet_config(HyperParameters& settings) {
    UNetConfig config;
    config.inputs = settings.integer("inputs", config.inputs, 1);
    config.outputs = settings.integer("outputs", config.outputs, 1);
    config.width = settings.integer("width", config.width, 1);
    config.depth = settings.integer("depth", config.depth, 1, most_halvings);
    return config;
}

std::unique_ptr<Workload> make_unet(const Options& options, HyperParameters& settings,
                                    c10::intrusive_ptr<c10d::ProcessGroup> sync_group) {
    UNetConfig config = unet_config(settings);
    settings.finish(options.model);
    config.sync_group = std::move(sync_group);
    StormData data = open_storms(options, {config.inputs, config.outputs});
    const std::int64_t multiple = std::int64_t{1} << config.depth;
    if (data.training->height() % multiple != 0 || data.training->width() % multiple != 0) {
        throw bad_input(
            "unet halves the image {} times, so its sides must be multiples of {}: {} x {} are not",
            config.depth, multiple, data.training->height(), data.training->width());
    }
    UNet network(config);
    return std::make_unique<Nowcasting>(std::move(network), config, std::move(data));
}

}  // namespace joulemark::train
