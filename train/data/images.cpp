// SPDX-License-Identifier: Apache-2.0
#include "data/images.h"

#include <cstring>
#include <utility>

#include "data/crop.h"
#include "data/jpeg.h"
#include "data/random.h"
#include "data/resample.h"

namespace joulemark::train {
namespace {

Sample labelled(torch::Tensor image, std::int64_t label) {
    torch::Tensor target = torch::empty({}, torch::kInt64);
    *target.mutable_data_ptr<std::int64_t>() = label;
    return {std::move(image), std::move(target)};
}

}  // namespace

Batch ImageDataset::collate(const std::vector<Sample>& samples, bool pin) const {
    const auto count = static_cast<std::int64_t>(samples.size());
    const torch::Tensor& first = samples.front()[0];
    const auto image_bytes = static_cast<std::size_t>(first.numel());
    torch::Tensor images = torch::empty({count, first.size(0), first.size(1), 3},
                                        torch::TensorOptions(torch::kUInt8).pinned_memory(pin));
    torch::Tensor labels = torch::empty({count}, torch::TensorOptions(torch::kInt64).pinned_memory(pin));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        std::memcpy(images.mutable_data_ptr<std::uint8_t>() + i * image_bytes,
                    samples[i][0].const_data_ptr<std::uint8_t>(), image_bytes);
        labels.mutable_data_ptr<std::int64_t>()[i] = *samples[i][1].const_data_ptr<std::int64_t>();
    }
    Batch batch;
    batch.inputs = {images.permute({0, 3, 1, 2})};
    batch.target = std::move(labels);
    batch.samples = count;
    return batch;
}

SyntheticImages::SyntheticImages(std::uint32_t size, std::int64_t classes, std::int64_t image_size,
                                 std::uint64_t seed, Split split)
    : size_(size),
      image_size_(image_size),
      seed_(seed),
      split_(split),
      patterns_(static_cast<std::size_t>(classes)) {
    for (std::size_t label = 0; label < patterns_.size(); ++label) {
        KeyedRandom random{seed, pattern_stream, label};
        patterns_[label].resize(grid * grid * 3);
        for (std::uint8_t& value : patterns_[label]) {
            value = static_cast<std::uint8_t>(random.below(256));
        }
    }
}

Result<Sample> SyntheticImages::load(std::uint32_t index, std::uint64_t) const {
    const auto& pattern = patterns_[index % patterns_.size()];
    torch::Tensor image = torch::empty({image_size_, image_size_, 3}, torch::kUInt8);
    auto* pixels = image.mutable_data_ptr<std::uint8_t>();
    const auto bytes = static_cast<std::size_t>(image.numel());

    KeyedRandom random{seed_, noise_stream, static_cast<std::uint64_t>(split_), index};
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t noise = random.bits();
        std::memcpy(pixels + at, &noise, std::min(sizeof noise, bytes - at));
    }
    for (std::int64_t y = 0; y < image_size_; ++y) {
        const std::uint8_t* colours = pattern.data() + y * grid / image_size_ * grid * 3;
        for (std::int64_t x = 0; x < image_size_; ++x, pixels += 3) {
            const std::uint8_t* colour = colours + x * grid / image_size_ * 3;
            for (int channel = 0; channel < 3; ++channel) {
                pixels[channel] = static_cast<std::uint8_t>((pixels[channel] + colour[channel]) / 2);
            }
        }
    }
    return labelled(std::move(image), static_cast<std::int64_t>(index % patterns_.size()));
}

Result<Sample> StoredImages::load(std::uint32_t index, std::uint64_t epoch) const {
    const auto file = source_->read(index);
    if (!file) {
        return file.failure();
    }
    KeyedRandom random{seed_, crop_stream, epoch, index};
    const auto choose = [&](int width, int height) {
        return split_ == Split::training ? random_resized_crop(width, height, random)
                                         : centre_crop(width, height);
    };
    const auto target = static_cast<int>(image_size_);
    const auto decoded = decode_jpeg({reinterpret_cast<const std::uint8_t*>(file->data()), file->size()},
                                     choose, target, target);
    if (!decoded) {
        return Failure{
            fmt::format("skipped the damaged image {}: {}", source_->where(index), decoded.failure().reason),
            decoded.failure().remedy};
    }
    torch::Tensor image = torch::empty({image_size_, image_size_, 3}, torch::kUInt8);
    const bool mirror = split_ == Split::training && random.below(2) == 1;
    resample(decoded->view, decoded->box, target, target, mirror, image.mutable_data_ptr<std::uint8_t>());
    return labelled(std::move(image), source_->label(index));
}

}  // namespace joulemark::train
