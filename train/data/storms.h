// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/hdf5.h"
#include "data/images.h"

namespace joulemark::train {

/// How nowcasting cuts a sequence of radar images: `inputs` frames are seen, the next `outputs` forecast.
struct StormFrames {
    std::int64_t inputs = 13;
    std::int64_t outputs = 12;
    std::int64_t all() const { return inputs + outputs; }
};

/// Image sequences of vertically integrated liquid, 0-255. A sample is {uint8 [H, W, T]}, as it lies in the
/// file; a batch has the input uint8 [B, H, W, T] and no target: the last frames of the input are what is
/// forecast.
class StormDataset : public Dataset {
  public:
    virtual std::int64_t height() const = 0;
    virtual std::int64_t width() const = 0;
    Batch collate(const std::vector<Sample>& samples, bool pin) const override;
};

/// SEVIR (Veillette et al. 2020): HDF5 files with the data set `vil` [event, H, W, frames], uint8. Each event
/// gives as many samples as windows of all frames fit in it, beginning `outputs` frames apart: SEVIR's 49
/// frames give three.
class SevirStorms final : public StormDataset {
  public:
    /// `path`: one file, or a folder whose .h5 and .hdf5 files, also those of its sub-folders, are read in
    /// the order of their names; those that cannot be opened, or hold no event, are passed over. Throws
    /// bad_input naming the file: no such data set, not four dimensions, too few frames, images of another
    /// size than the first file's, or no event in any of them.
    SevirStorms(const std::filesystem::path& path, const StormFrames& frames);

    std::uint32_t size() const override { return static_cast<std::uint32_t>(windows_.size()); }
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    std::string name() const override { return "the storm events"; }
    std::string digest() const override;
    std::vector<std::string> problems() const override { return problems_; }
    std::int64_t height() const override { return height_; }
    std::int64_t width() const override { return width_; }

  private:
    struct Window {
        std::uint32_t file;
        std::uint32_t event;
        std::uint32_t first_frame;
    };
    void add_file(const std::filesystem::path& path);

    StormFrames frames_;
    std::vector<Hdf5Array> files_;
    std::vector<Window> windows_;
    std::vector<std::string> problems_;
    std::int64_t height_ = 0;
    std::int64_t width_ = 0;
};

/// A made-up field of storm cells that drifts across the image at a speed and in a direction of each sample's
/// own.
class SyntheticStorms final : public StormDataset {
  public:
    SyntheticStorms(std::uint32_t size, std::int64_t image_size, const StormFrames& frames,
                    std::uint64_t seed, Split split);

    std::uint32_t size() const override { return size_; }
    Result<Sample> load(std::uint32_t index, std::uint64_t epoch) const override;
    std::string name() const override { return "the synthetic data set"; }
    std::int64_t height() const override { return image_size_; }
    std::int64_t width() const override { return image_size_; }

  private:
    std::uint32_t size_;
    std::int64_t image_size_;
    StormFrames frames_;
    std::uint64_t seed_;
    Split split_;
    std::int64_t field_size_;
    std::vector<std::uint8_t> field_;  ///< field_size x field_size
};

}  // namespace joulemark::train
