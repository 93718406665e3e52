// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_source.h"

namespace joulemark::train {

enum class Split { training, validation };

/// Labelled images. A sample is {uint8 [S, S, 3], int64 []}; a batch has the input uint8 [B, 3, S, S], stored
/// NHWC, and the target int64 [B]. Scaling to floats and normalising is left to the model's device: a quarter
/// of the bytes to copy.
class ImageDataset : public Dataset {
  public:
    Batch collate(const std::vector<Sample>& samples, bool pin) const override;
};

/// Made-up images that cost a loader little: a colour grid per class under noise, by seed and index.
class SyntheticImages final : public ImageDataset {
  public:
    SyntheticImages(std::uint32_t size, std::int64_t classes, std::int64_t image_size, std::uint64_t seed,
                    Split split);

    std::uint32_t size() const override { return size_; }
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    std::string name() const override { return "the synthetic data set"; }

  private:
    static constexpr std::int64_t grid = 8;
    std::uint32_t size_;
    std::int64_t image_size_;
    std::uint64_t seed_;
    Split split_;
    std::vector<std::vector<std::uint8_t>> patterns_;  ///< per class: grid x grid x 3
};

/// JPEG files: random resized crop and flip for training (keyed by seed, epoch and index), the centre for
/// validation.
class StoredImages final : public ImageDataset {
  public:
    StoredImages(std::unique_ptr<ImageSource> source, std::int64_t image_size, std::uint64_t seed,
                 Split split)
        : source_(std::move(source)), image_size_(image_size), seed_(seed), split_(split) {}

    std::uint32_t size() const override { return source_->size(); }
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    std::string name() const override { return "the image folder"; }
    std::string digest() const override { return source_->digest(); }
    std::vector<std::string> problems() const override { return source_->problems(); }

  private:
    std::unique_ptr<ImageSource> source_;
    std::int64_t image_size_;
    std::uint64_t seed_;
    Split split_;
};

}  // namespace joulemark::train
