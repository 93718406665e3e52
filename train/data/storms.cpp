// SPDX-License-Identifier: Apache-2.0
#include "data/storms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <system_error>

#include <fmt/ranges.h>

#include "core/error.h"
#include "data/digest.h"
#include "data/random.h"

namespace joulemark::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* array_name = "vil";

std::vector<fs::path> hdf5_files(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        return {path};
    }
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        const fs::path extension = entry->path().extension();
        std::error_code unreadable;
        if ((extension == ".h5" || extension == ".hdf5") && entry->is_regular_file(unreadable)) {
            files.push_back(entry->path());
        }
    }
    if (error) {
        throw bad_input("cannot read the folder {}: {}", path.string(), error.message());
    }
    if (files.empty()) {
        throw bad_input("the folder {} has no HDF5 file (.h5, .hdf5)", path.string());
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace

Batch StormDataset::collate(const std::vector<Sample>& samples, bool pin) const {
    const torch::Tensor& first = samples.front()[0];
    const auto count = static_cast<std::int64_t>(samples.size());
    torch::Tensor frames = torch::empty({count, first.size(0), first.size(1), first.size(2)},
                                        torch::TensorOptions(torch::kUInt8).pinned_memory(pin));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        std::memcpy(frames.mutable_data_ptr<std::uint8_t>() + i * first.nbytes(),
                    samples[i][0].const_data_ptr<std::uint8_t>(), first.nbytes());
    }
    Batch batch;
    batch.inputs = {std::move(frames)};
    batch.samples = count;
    return batch;
}

SevirStorms::SevirStorms(const fs::path& path, const StormFrames& frames) : frames_(frames) {
    for (const fs::path& file : hdf5_files(path)) {
        try {
            add_file(file);
        } catch (const UnreadableHdf5& error) {
            problems_.push_back(fmt::format("passed over: {}", error.what()));
        }
    }
    if (windows_.empty()) {
        throw bad_input("{} holds no event ({})", path.string(), problems_.front());
    }
}

void SevirStorms::add_file(const fs::path& path) {
    Hdf5Array array(path, array_name);
    const std::vector<std::int64_t>& shape = array.shape();
    if (shape.size() != 4) {
        throw bad_input("{}: '{}' has the shape [{}], but image sequences are [event, height, width, frame]",
                        path.string(), array_name, fmt::join(shape, ", "));
    }
    if (shape[3] < frames_.all()) {
        throw bad_input("{}: '{}' has {} frames an event, fewer than the {} seen and {} forecast",
                        path.string(), array_name, shape[3], frames_.inputs, frames_.outputs);
    }
    if (files_.empty()) {
        height_ = shape[1];
        width_ = shape[2];
    } else if (shape[1] != height_ || shape[2] != width_) {
        throw bad_input("{}: '{}' has images of {} x {}, but those of {} are {} x {}", path.string(),
                        array_name, shape[1], shape[2], files_.front().path().string(), height_, width_);
    }
    if (shape[0] == 0) {
        problems_.push_back(fmt::format("passed over: {} holds no event", path.string()));
        return;
    }
    for (std::int64_t event = 0; event < shape[0]; ++event) {
        for (std::int64_t frame = 0; frame + frames_.all() <= shape[3]; frame += frames_.outputs) {
            windows_.push_back({static_cast<std::uint32_t>(files_.size()), static_cast<std::uint32_t>(event),
                                static_cast<std::uint32_t>(frame)});
        }
    }
    files_.push_back(std::move(array));
}

std::string SevirStorms::digest() const {
    Digest digest;
    for (const Hdf5Array& file : files_) {
        digest.add(file.path().filename().string());
        for (const std::int64_t extent : file.shape()) {
            digest.add(extent);
        }
    }
    return digest.text();
}

Result<Sample> SevirStorms::load(std::uint32_t index, std::uint64_t) const {
    const Window& window = windows_[index];
    const std::array<std::int64_t, 4> begin = {window.event, 0, 0, window.first_frame};
    const std::array<std::int64_t, 4> count = {1, height_, width_, frames_.all()};
    std::vector<float> values(static_cast<std::size_t>(height_ * width_ * frames_.all()));
    if (auto failure = files_[window.file].read(begin, count, values.data())) {
        return *failure;
    }
    torch::Tensor sample = torch::empty({height_, width_, frames_.all()}, torch::kUInt8);
    std::ranges::transform(values, sample.mutable_data_ptr<std::uint8_t>(), [](float value) {
        return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));  // 255 also marks a missing pixel
    });
    return Sample{std::move(sample)};
}

SyntheticStorms::SyntheticStorms(std::uint32_t size, std::int64_t image_size, const StormFrames& frames,
                                 std::uint64_t seed, Split split)
    : size_(size),
      image_size_(image_size),
      frames_(frames),
      seed_(seed),
      split_(split),
      field_size_(3 * image_size) {
    // Cells are a tenth of the image wide; a quarter of the field has some, as of real storms.
    KeyedRandom random{seed, field_stream};
    std::vector<float> field(static_cast<std::size_t>(field_size_ * field_size_));
    const double side = static_cast<double>(image_size);
    for (int cell = 0; cell < 80; ++cell) {
        const double x = random.uniform(0, static_cast<double>(field_size_));
        const double y = random.uniform(0, static_cast<double>(field_size_));
        const double radius = side * random.uniform(0.04, 0.16);
        const double peak = random.uniform(60, 255);
        const auto reach = static_cast<std::int64_t>(3 * radius);
        for (std::int64_t dy = -reach; dy <= reach; ++dy) {
            for (std::int64_t dx = -reach; dx <= reach; ++dx) {
                const std::int64_t row = (static_cast<std::int64_t>(y) + dy + field_size_) % field_size_;
                const std::int64_t column = (static_cast<std::int64_t>(x) + dx + field_size_) % field_size_;
                field[static_cast<std::size_t>(row * field_size_ + column)] += static_cast<float>(
                    peak * std::exp(-static_cast<double>(dx * dx + dy * dy) / (radius * radius)));
            }
        }
    }
    field_.resize(field.size());
    std::ranges::transform(field, field_.begin(),
                           [](float value) { return static_cast<std::uint8_t>(std::min(value, 255.0F)); });
}

Result<Sample> SyntheticStorms::load(std::uint32_t index, std::uint64_t) const {
    KeyedRandom random{seed_, drift_stream, static_cast<std::uint64_t>(split_), index};
    const double side = static_cast<double>(field_size_);
    const double x = random.uniform(0, side);
    const double y = random.uniform(0, side);
    const double direction = random.uniform(0, 2 * std::numbers::pi);
    const double speed = random.uniform(0, 0.01) * static_cast<double>(image_size_);  // pixels a frame
    const std::int64_t frames = frames_.all();
    torch::Tensor sample = torch::empty({image_size_, image_size_, frames}, torch::kUInt8);
    auto* pixels = sample.mutable_data_ptr<std::uint8_t>();
    for (std::int64_t frame = 0; frame < frames; ++frame) {
        const auto step = static_cast<double>(frame) * speed;
        const auto left = static_cast<std::int64_t>(std::floor(x + side + step * std::cos(direction)));
        const auto top = static_cast<std::int64_t>(std::floor(y + side + step * std::sin(direction)));
        for (std::int64_t row = 0; row < image_size_; ++row) {
            const std::uint8_t* line = field_.data() + (top + row) % field_size_ * field_size_;
            std::uint8_t* target = pixels + row * image_size_ * frames + frame;
            for (std::int64_t column = 0; column < image_size_; ++column, target += frames) {
                *target = line[(left + column) % field_size_];
            }
        }
    }
    return Sample{std::move(sample)};
}

}  // namespace joulemark::train
