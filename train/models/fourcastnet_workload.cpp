// SPDX-License-Identifier: Apache-2.0
#include "models/fourcastnet_workload.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "data/weather.h"
#include "models/afno.h"
#include "models/precision.h"

namespace joulemark::train {
namespace {

using torch::Tensor;

/// The 20 channels of FourCastNet's ERA5 files, in their order.
constexpr std::array channel_names = {"u10",   "v10",   "t2m",  "sp",   "mslp", "t850", "u1000",
                                      "v1000", "z1000", "u850", "v850", "z850", "u500", "v500",
                                      "z500",  "t500",  "z50",  "r500", "r850", "tcwv"};
constexpr std::int64_t z500 = 14;

struct WeatherData {
    std::unique_ptr<WeatherDataset> training;
    std::unique_ptr<WeatherDataset> validation;  ///< null where there is none
    WeatherStatistics statistics;
};

WeatherData synthetic_weather(const Options& options, const WeatherGrid& grid, std::int64_t steps) {
    const std::int64_t samples = options.samples.value_or(options.defaults.samples);
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() / 2;
    if (samples > most || options.eval_samples > most) {
        throw bad_input("the synthetic data set holds at most {} samples", most);
    }
    const auto make = [&](std::int64_t size, std::int64_t first_time) {
        return std::make_unique<SyntheticWeather>(grid, steps, static_cast<std::uint32_t>(size),
                                                  static_cast<std::uint32_t>(first_time), options.seed);
    };
    auto training = make(samples, 0);
    WeatherData data;
    data.statistics = training->statistics();
    data.training = std::move(training);
    data.validation = options.eval_samples > 0 ? make(options.eval_samples, samples) : nullptr;
    return data;
}

WeatherData era5_weather(const std::filesystem::path& folder, std::int64_t steps, std::int64_t patch) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) {
        throw bad_input(
            "there is no weather folder {}: --dataset takes 'synthetic' or a folder with one HDF5 file a "
            "year, or with such folders 'train' and 'valid'",
            folder.string());
    }
    const bool split = std::filesystem::is_directory(folder / "train", ignored);
    auto training = Era5Weather::open(split ? folder / "train" : folder, steps, patch);
    WeatherData data;
    data.statistics = training->statistics(folder);
    if (split && std::filesystem::is_directory(folder / "valid", ignored)) {
        auto validation = Era5Weather::open(folder / "valid", steps, patch);
        const WeatherGrid& a = training->grid();
        const WeatherGrid& b = validation->grid();
        if (a.channels != b.channels || a.height != b.height || a.width != b.width) {
            throw bad_input("the validation fields of {} have another shape than the training's",
                            folder.string());
        }
        data.validation = std::move(validation);
    }
    data.training = std::move(training);
    return data;
}

/// Per sample the norm of the error over the norm of the target, averaged over the samples.
Tensor relative_l2(const Tensor& prediction, const Tensor& target) {
    const Tensor error = (prediction - target).flatten(1).norm(2, 1);
    return (error / target.flatten(1).norm(2, 1)).mean();
}

class FourCastNet final : public Workload {
  public:
    FourCastNet(const AfnoConfig& config, WeatherData data, std::int64_t steps, std::int64_t channel)
        : network_(config),
          flops_(static_cast<double>(steps) * config.flops()),
          steps_(steps),
          channel_(channel),
          data_(std::move(data)) {}

    torch::nn::Module& module() override { return *network_; }
    const Dataset& training_data() const override { return *data_.training; }
    const Dataset* validation_data() const override { return data_.validation.get(); }
    Outcome forward(const Batch& batch) override;
    std::string quality_name() const override { return channel_name() + "_rmse"; }
    std::vector<std::string> further_names() const override { return {channel_name() + "_acc"}; }
    std::optional<double> flops_per_sample() const override { return flops_; }

  private:
    std::string channel_name() const {
        const bool known = data_.training->grid().channels == static_cast<std::int64_t>(channel_names.size());
        return known ? channel_names[static_cast<std::size_t>(channel_)] : fmt::format("channel{}", channel_);
    }
    void place(torch::Device device);
    void rate(const Tensor& prediction, const Tensor& target, Outcome& outcome) const;

    AfnoNet network_;
    double flops_;
    std::int64_t steps_;
    std::int64_t channel_;
    WeatherData data_;
    // On the model's device:
    Tensor mean_;         ///< [1, 1, C, 1, 1]
    Tensor inverse_sd_;   ///< the same
    Tensor channel_sd_;   ///< []
    Tensor climatology_;  ///< [H, W], of the rated channel, normalised
    Tensor weights_;      ///< [H, 1], of latitudes
};

void FourCastNet::place(torch::Device device) {
    const WeatherStatistics& s = data_.statistics;
    mean_ = s.mean.to(device).view({1, 1, -1, 1, 1});
    inverse_sd_ = s.sd.reciprocal().to(device).view({1, 1, -1, 1, 1});
    channel_sd_ = s.sd[channel_].to(device);
    climatology_ = ((s.climatology[channel_] - s.mean[channel_]) / s.sd[channel_]).to(device);
    weights_ = data_.training->grid().latitude_weights().to(device).unsqueeze(1);
}

Outcome FourCastNet::forward(const Batch& batch) {
    const Tensor& raw = batch.inputs.front();  // [B, steps + 1, C, H, W]
    if (!mean_.defined()) {
        place(raw.device());
    }
    const Tensor fields = raw.sub(mean_).mul_(inverse_sd_);
    Tensor state = fields.select(1, 0);
    Outcome outcome;
    for (std::int64_t step = 1; step <= steps_; ++step) {
        state = at_least_float32(network_(state));
        const Tensor loss = relative_l2(state, fields.select(1, step));
        outcome.loss = step == 1 ? loss : outcome.loss + loss;
    }
    rate(state.detach(), fields.select(1, steps_), outcome);
    return outcome;
}

/// RMSE in the data's units, and the correlation of anomalies from the climatology; both weighted by
/// latitude.
void FourCastNet::rate(const Tensor& prediction, const Tensor& target, Outcome& outcome) const {
    const torch::NoGradGuard no_grad;
    const Tensor forecast = prediction.select(1, channel_) - climatology_;  // [B, H, W]
    const Tensor truth = target.select(1, channel_) - climatology_;
    const auto mean = [&](const Tensor& values) { return (values * weights_).mean({1, 2}); };
    const Tensor rmse = mean((forecast - truth).square()).sqrt() * channel_sd_;
    const Tensor acc = mean(forecast * truth) / (mean(forecast.square()) * mean(truth.square())).sqrt();
    outcome.quality_sum = rmse.sum();
    outcome.further_sums = acc.sum().view({1});
}

}  // namespace

std::unique_ptr<Workload> make_fourcastnet(const Options& options, HyperParameters& settings,
                                           c10::intrusive_ptr<c10d::ProcessGroup>) {
    AfnoConfig config = AfnoConfig::from(settings);
    const std::int64_t steps = settings.integer("steps", 1, 1, most_layers);
    const bool synthetic = options.dataset == "synthetic";
    WeatherGrid grid;
    if (synthetic) {
        grid.channels = settings.integer("channels", grid.channels, 1);
        grid.height = settings.integer("height", grid.height, 1);
        grid.width = settings.integer("width", grid.width, 1);
        grid.latitudes = grid.height + 1;
    }
    const std::int64_t rated = settings.integer("channel", -1, 0);
    settings.finish(options.model);
    if (synthetic && (grid.height % config.patch != 0 || grid.width % config.patch != 0)) {
        throw bad_input("a grid of {} x {} is not made of patches of {} x {}", grid.height, grid.width,
                        config.patch, config.patch);
    }

    WeatherData data = synthetic ? synthetic_weather(options, grid, steps)
                                 : era5_weather(options.dataset, steps, config.patch);
    grid = data.training->grid();
    config.channels = grid.channels;
    config.height = grid.height;
    config.width = grid.width;
    if (rated >= grid.channels) {
        throw bad_input("--set channel={}: the fields have the channels 0 to {}", rated, grid.channels - 1);
    }
    const std::int64_t channel = rated >= 0 ? rated : std::min(z500, grid.channels - 1);
    return std::make_unique<FourCastNet>(config, std::move(data), steps, channel);
}

}  // namespace joulemark::train
