// SPDX-License-Identifier: Apache-2.0
#include "data/weather.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "data/random.h"

namespace joulemark::train {
namespace {

constexpr int waves = 6;

}  // namespace

torch::Tensor WeatherGrid::latitude_weights() const {
    torch::Tensor weights = torch::empty({height}, torch::kFloat64);
    auto* values = weights.mutable_data_ptr<double>();
    for (std::int64_t row = 0; row < height; ++row) {
        const double degrees = 90 - 180.0 * static_cast<double>(row) / static_cast<double>(latitudes - 1);
        values[row] = std::max(0.0, std::cos(degrees * std::numbers::pi / 180));
    }
    return (weights / weights.mean()).to(torch::kFloat32);
}

Result<Sample> WeatherDataset::load(std::uint32_t index, std::uint64_t) const {
    torch::Tensor fields = torch::empty({steps_ + 1, grid_.channels, grid_.height, grid_.width});
    if (auto failure = read(index, fields.mutable_data_ptr<float>())) {
        return std::move(*failure);
    }
    return Sample{std::move(fields)};
}

Batch WeatherDataset::collate(const std::vector<Sample>& samples, bool pin) const {
    const auto count = static_cast<std::int64_t>(samples.size());
    torch::Tensor fields = torch::empty({count, steps_ + 1, grid_.channels, grid_.height, grid_.width},
                                        torch::TensorOptions(torch::kFloat32).pinned_memory(pin));
    auto* out = fields.mutable_data_ptr<float>();
    for (const Sample& sample : samples) {
        out = std::copy_n(sample.front().const_data_ptr<float>(), sample.front().numel(), out);
    }
    Batch batch;
    batch.inputs = {std::move(fields)};
    batch.samples = count;
    return batch;
}

SyntheticWeather::SyntheticWeather(WeatherGrid grid, std::int64_t steps, std::uint32_t size,
                                   std::uint32_t first_time, std::uint64_t seed)
    : WeatherDataset(grid, steps),
      size_(size),
      first_time_(first_time),
      fields_(static_cast<std::size_t>(grid.values())) {
    const auto columns = static_cast<std::size_t>(grid.width);
    for (std::int64_t channel = 0; channel < grid.channels; ++channel) {
        KeyedRandom random{seed, wave_stream, static_cast<std::uint64_t>(channel)};
        for (int wave = 0; wave < waves; ++wave) {
            // Separable, so that a row is a table of sines times two numbers.
            const double around = 1 + static_cast<double>(random.below(8));
            const double down = static_cast<double>(random.below(5));
            const double phase = random.uniform(0, 2 * std::numbers::pi);
            const double tilt = random.uniform(0, 2 * std::numbers::pi);
            std::vector<float> sines(columns);
            std::vector<float> cosines(columns);
            for (std::size_t x = 0; x < columns; ++x) {
                const double angle =
                    2 * std::numbers::pi * around * static_cast<double>(x) / static_cast<double>(columns) +
                    phase;
                sines[x] = static_cast<float>(std::sin(angle));
                cosines[x] = static_cast<float>(std::cos(angle));
            }
            float* row = fields_.data() + channel * grid.height * grid.width;
            const float amplitude = std::sqrt(2.0F / waves);
            for (std::int64_t y = 0; y < grid.height; ++y, row += columns) {
                const double angle =
                    std::numbers::pi * down * static_cast<double>(y) / static_cast<double>(grid.height) +
                    tilt;
                const auto c = static_cast<float>(std::cos(angle)) * amplitude;
                const auto s = static_cast<float>(std::sin(angle)) * amplitude;
                for (std::size_t x = 0; x < columns; ++x) {
                    row[x] += c * sines[x] + s * cosines[x];
                }
            }
        }
    }
}

WeatherStatistics SyntheticWeather::statistics() const {
    return {torch::zeros({grid().channels}), torch::ones({grid().channels}),
            torch::zeros({grid().channels, grid().height, grid().width})};
}

std::optional<Failure> SyntheticWeather::read(std::uint32_t index, float* out) const {
    const auto width = static_cast<std::size_t>(grid().width);
    const std::size_t speed = std::max<std::size_t>(1, width / 360);
    for (std::int64_t step = 0; step <= steps(); ++step) {
        const std::size_t time = first_time_ + index + static_cast<std::size_t>(step);
        const std::size_t shift = time * speed % width;
        for (auto row = fields_.begin(); row != fields_.end(); row += static_cast<std::ptrdiff_t>(width)) {
            out = std::rotate_copy(row, row + static_cast<std::ptrdiff_t>(width - shift),
                                   row + static_cast<std::ptrdiff_t>(width), out);
        }
    }
    return std::nullopt;
}

}  // namespace joulemark::train
