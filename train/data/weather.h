// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/hdf5.h"

namespace joulemark::train {

/// The part of a global latitude-longitude grid that is used, from the North Pole down.
struct WeatherGrid {
    std::int64_t channels = 20;
    std::int64_t height = 720;  ///< rows used
    std::int64_t width = 1440;
    std::int64_t latitudes = 721;  ///< rows of the whole grid, from +90 to -90 degrees

    std::int64_t values() const { return channels * height * width; }
    /// cos(latitude) of the rows used, divided by their mean: float32 [height].
    torch::Tensor latitude_weights() const;
};

/// What fields are normalised with, and what anomalies are measured from.
struct WeatherStatistics {
    torch::Tensor mean;         ///< float32 [channels]
    torch::Tensor sd;           ///< the same
    torch::Tensor climatology;  ///< float32 [channels, height, width], mean over time in the data's units
};

/// Runs of consecutive global fields. A sample is {float32 [steps + 1, channels, height, width]}, a batch has
/// that as its only input, with a first dimension of samples, in the data's own units; normalising is left to
/// the device.
class WeatherDataset : public Dataset {
  public:
    WeatherDataset(WeatherGrid grid, std::int64_t steps) : grid_(grid), steps_(steps) {}

    Batch collate(const std::vector<Sample>& samples, bool pin) const override;
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    const WeatherGrid& grid() const { return grid_; }

  protected:
    std::int64_t steps() const { return steps_; }
    /// The fields of sample `index`, steps + 1 times grid().values(), into `out`.
    virtual std::optional<Failure> read(std::uint32_t index, float* out) const = 0;

  private:
    WeatherGrid grid_;
    std::int64_t steps_;
};

/// Made-up weather of the same size as the real: per channel a few waves of mean 0 and standard deviation
/// about 1, all moving east, one 360th of the circle (at least a column) in a time step.
class SyntheticWeather final : public WeatherDataset {
  public:
    SyntheticWeather(WeatherGrid grid, std::int64_t steps, std::uint32_t size, std::uint32_t first_time,
                     std::uint64_t seed);

    std::uint32_t size() const override { return size_; }
    std::string name() const override { return "the synthetic data set"; }
    WeatherStatistics statistics() const;

  protected:
    std::optional<Failure> read(std::uint32_t index, float* out) const override;

  private:
    std::uint32_t size_;
    std::uint32_t first_time_;
    std::vector<float> fields_;  ///< of time 0: channels x height x width
};

/// ERA5 as FourCastNet reads it: one HDF5 file a year in a folder, each with `fields` [time, channel,
/// latitude, longitude]. Samples do not cross from one file to the next.
class Era5Weather final : public WeatherDataset {
  public:
    /// Rows and columns are cut to multiples of `patch` (721 rows to 720). Files that cannot be opened are
    /// passed over. Throws bad_input naming the folder or file.
    static std::unique_ptr<Era5Weather> open(const std::filesystem::path& folder, std::int64_t steps,
                                             std::int64_t patch);

    std::uint32_t size() const override { return first_.back(); }
    std::string name() const override { return folder_.string(); }
    std::string digest() const override;
    std::vector<std::string> problems() const override { return problems_; }
    /// Of `folder`/stats: global_means.npy, global_stds.npy [1, channels, 1, 1] and time_means.npy [1,
    /// channels, latitude, longitude], or a stats.h5 in `folder` with data sets of these names. What is not
    /// there is computed from 128 times spread evenly over these files. Throws bad_input naming the file; when
    /// one of global_means and global_stds is there without the other.
    WeatherStatistics statistics(const std::filesystem::path& folder) const;

  protected:
    std::optional<Failure> read(std::uint32_t index, float* out) const override;

  private:
    Era5Weather(std::filesystem::path folder, std::vector<Hdf5Array> years, std::vector<std::string> problems,
                WeatherGrid grid, std::int64_t steps);
    /// A failure also where a value is not a finite number.
    std::optional<Failure> read_times(std::size_t year, std::int64_t time, std::int64_t count,
                                      float* out) const;
    WeatherStatistics compute_statistics() const;

    std::filesystem::path folder_;
    std::vector<Hdf5Array> years_;
    std::vector<std::string> problems_;
    std::vector<std::uint32_t> first_;  ///< first sample of each file, and behind them the number of samples
};

}  // namespace joulemark::train
