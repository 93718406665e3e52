// SPDX-License-Identifier: Apache-2.0
// ERA5 in yearly HDF5 files, and the statistics that belong to them.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>

#include "data/digest.h"
#include "data/npy.h"
#include "data/weather.h"

namespace joulemark::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* fields_name = "fields";
constexpr std::int64_t times_for_statistics = 128;

std::vector<fs::path> yearly_files(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const std::string extension = entry->path().extension().string();
        if ((extension == ".h5" || extension == ".hdf5") && entry->path().stem() != "stats") {
            files.push_back(entry->path());
        }
    }
    if (error) {
        throw bad_input("cannot read the weather folder {}: {}", folder.string(), error.message());
    }
    if (files.empty()) {
        throw bad_input("{} holds no HDF5 file (.h5, .hdf5): ERA5 is read from one such file a year",
                        folder.string());
    }
    std::ranges::sort(files);
    return files;
}

/// A statistics array as a flat list; empty where there is no file for it.
std::vector<float> read_statistics(const fs::path& folder, const std::string& name) {
    std::error_code ignored;
    const fs::path npy = folder / "stats" / (name + ".npy");
    if (fs::is_regular_file(npy, ignored)) {
        return read_npy(npy).values;
    }
    const fs::path hdf5 = folder / "stats.h5";
    if (!fs::exists(hdf5, ignored)) {
        return {};
    }
    const Hdf5Array array(hdf5, name);
    std::int64_t count = 1;
    for (const std::int64_t extent : array.shape()) {
        count *= extent;
    }
    std::vector<float> values(static_cast<std::size_t>(count));
    const std::vector<std::int64_t> begin(array.shape().size(), 0);
    if (const auto failure = array.read(begin, array.shape(), values.data())) {
        throw bad_input("{}", failure->reason);
    }
    return values;
}

torch::Tensor per_channel(const std::vector<float>& values, std::int64_t channels, const fs::path& folder,
                          const std::string& name) {
    if (static_cast<std::int64_t>(values.size()) < channels) {
        throw bad_input("{} of {} holds {} values for {} channels", name, folder.string(), values.size(),
                        channels);
    }
    return torch::tensor(values).slice(0, 0, channels).contiguous();
}

}  // namespace

std::unique_ptr<Era5Weather> Era5Weather::open(const fs::path& folder, std::int64_t steps,
                                               std::int64_t patch) {
    std::vector<Hdf5Array> years;
    std::vector<std::string> problems;
    for (const fs::path& file : yearly_files(folder)) {
        try {
            years.emplace_back(file, fields_name);
        } catch (const UnreadableHdf5& error) {
            problems.push_back(fmt::format("passed over: {}", error.what()));
            continue;
        }
        const auto& shape = years.back().shape();
        const auto& first = years.front().shape();
        if (shape.size() != 4) {
            throw bad_input("'{}' of {} has {} dimensions: it must be [time, channel, latitude, longitude]",
                            fields_name, file.string(), shape.size());
        }
        if (!std::equal(shape.begin() + 1, shape.end(), first.begin() + 1)) {
            throw bad_input("{} holds fields of {}, but {} of {}: all years must have one shape",
                            file.string(), fmt::join(shape.begin() + 1, shape.end(), " x "),
                            years.front().path().string(), fmt::join(first.begin() + 1, first.end(), " x "));
        }
        if (shape[0] <= steps) {
            throw bad_input("{} holds {} time steps: a sample needs {}", file.string(), shape[0], steps + 1);
        }
    }
    if (years.empty()) {
        throw bad_input("{} holds no HDF5 file that can be read ({})", folder.string(), problems.front());
    }
    const auto& shape = years.front().shape();
    WeatherGrid grid{.channels = shape[1],
                     .height = shape[2] - shape[2] % patch,
                     .width = shape[3] - shape[3] % patch,
                     .latitudes = shape[2]};
    if (grid.values() == 0 || grid.latitudes < 2) {
        throw bad_input("{} holds fields of {} x {} points: fewer than one patch of {} x {}",
                        years.front().path().string(), shape[2], shape[3], patch, patch);
    }
    return std::unique_ptr<Era5Weather>(
        new Era5Weather(folder, std::move(years), std::move(problems), grid, steps));
}

Era5Weather::Era5Weather(fs::path folder, std::vector<Hdf5Array> years, std::vector<std::string> problems,
                         WeatherGrid grid, std::int64_t steps)
    : WeatherDataset(grid, steps),
      folder_(std::move(folder)),
      years_(std::move(years)),
      problems_(std::move(problems)),
      first_{0} {
    for (const Hdf5Array& year : years_) {
        first_.push_back(first_.back() + static_cast<std::uint32_t>(year.shape()[0] - steps));
    }
}

std::string Era5Weather::digest() const {
    Digest digest;
    for (const Hdf5Array& year : years_) {
        digest.add(year.path().filename().string());
        for (const std::int64_t extent : year.shape()) {
            digest.add(extent);
        }
    }
    return digest.text();
}

std::optional<Failure> Era5Weather::read_times(std::size_t year, std::int64_t time, std::int64_t count,
                                               float* out) const {
    const std::array begin = {time, std::int64_t{0}, std::int64_t{0}, std::int64_t{0}};
    const std::array extent = {count, grid().channels, grid().height, grid().width};
    if (auto failure = years_[year].read(begin, extent, out)) {
        return failure;
    }
    const std::int64_t points = grid().height * grid().width;
    for (std::int64_t field = 0; field < count * grid().channels; ++field, out += points) {
        if (!std::all_of(out, out + points, [](float value) { return std::isfinite(value); })) {
            return Failure{fmt::format("{}: channel {} of time {} holds a value that is not a finite number",
                                       years_[year].path().string(), field % grid().channels,
                                       time + field / grid().channels),
                           "fill what is missing"};
        }
    }
    return std::nullopt;
}

std::optional<Failure> Era5Weather::read(std::uint32_t index, float* out) const {
    const auto year = static_cast<std::size_t>(std::ranges::upper_bound(first_, index) - first_.begin() - 1);
    return read_times(year, index - first_[year], steps() + 1, out);
}

WeatherStatistics Era5Weather::statistics(const fs::path& folder) const {
    const std::vector<float> means = read_statistics(folder, "global_means");
    const std::vector<float> sds = read_statistics(folder, "global_stds");
    const std::vector<float> climate = read_statistics(folder, "time_means");
    if (means.empty() != sds.empty()) {
        throw bad_input("the statistics of {} have {} but no {}: give both, or neither", folder.string(),
                        means.empty() ? "global_stds" : "global_means",
                        means.empty() ? "global_means" : "global_stds");
    }
    WeatherStatistics statistics;
    if (means.empty() || sds.empty() || climate.empty()) {
        statistics = compute_statistics();
    }
    const WeatherGrid& g = grid();
    if (!means.empty() && !sds.empty()) {
        statistics.mean = per_channel(means, g.channels, folder, "global_means");
        statistics.sd = per_channel(sds, g.channels, folder, "global_stds");
    }
    if (!climate.empty()) {
        const std::int64_t width = years_.front().shape()[3];
        if (static_cast<std::int64_t>(climate.size()) < g.channels * g.latitudes * width) {
            throw bad_input("time_means of {} holds {} values: {} x {} x {} are needed", folder.string(),
                            climate.size(), g.channels, g.latitudes, width);
        }
        statistics.climatology = torch::tensor(climate)
                                     .slice(0, 0, g.channels * g.latitudes * width)
                                     .view({g.channels, g.latitudes, width})
                                     .slice(1, 0, g.height)
                                     .slice(2, 0, g.width)
                                     .contiguous();
    }
    if (!statistics.sd.gt(0).all().item<bool>()) {
        throw bad_input(
            "a channel of {} has a standard deviation that is not positive: it cannot be normalised",
            folder_.string());
    }
    return statistics;
}

WeatherStatistics Era5Weather::compute_statistics() const {
    const WeatherGrid& g = grid();
    const std::int64_t times = std::min<std::int64_t>(times_for_statistics, size());
    torch::Tensor field = torch::empty({g.channels, g.height, g.width});
    torch::Tensor mean_in_time = torch::zeros({g.channels, g.height, g.width}, torch::kFloat64);
    // Sums of what is left after the first field's means: the values may be large and their spread small.
    torch::Tensor offset;
    torch::Tensor sum = torch::zeros({g.channels}, torch::kFloat64);
    torch::Tensor squares = torch::zeros({g.channels}, torch::kFloat64);
    for (std::int64_t i = 0; i < times; ++i) {
        const auto index = static_cast<std::uint32_t>(i * size() / times);
        const auto year =
            static_cast<std::size_t>(std::ranges::upper_bound(first_, index) - first_.begin() - 1);
        if (const auto failure = read_times(year, index - first_[year], 1, field.mutable_data_ptr<float>())) {
            throw bad_input("{}", failure->reason);
        }
        const torch::Tensor values = field.to(torch::kFloat64);
        if (!offset.defined()) {
            offset = values.mean({1, 2}, true);
        }
        const torch::Tensor left = values - offset;
        sum += left.sum({1, 2});
        squares += left.square().sum({1, 2});
        mean_in_time += values;
    }
    const double count = static_cast<double>(times * g.height * g.width);
    const torch::Tensor mean = sum / count;
    return {(mean + offset.flatten()).to(torch::kFloat32),
            (squares / count - mean.square()).sqrt().to(torch::kFloat32),
            (mean_in_time / static_cast<double>(times)).to(torch::kFloat32)};
}

}  // namespace joulemark::train
