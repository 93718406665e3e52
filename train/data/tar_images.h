// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace joulemark::train {

/// The shards at `path`: itself if it ends in .tar, or a folder's files that do, in the order of their names.
std::vector<std::filesystem::path> tar_shards(const std::filesystem::path& path);

/// JPEG files in tar shards, in one of two layouts: `class/name.jpg`, the last folder naming the class, or
/// WebDataset's pairs `key.jpg` and `key.cls`, whose number is the label. Shards are read through once,
/// headers only, for the offset of every image (24 bytes each); images are then read in any order with pread,
/// so that ranks share the samples of all shards as they do those of a folder. A shard that ends early keeps
/// the images in front of its end.
class TarImages final : public ImageSource {
  public:
    /// Throws bad_input: no image in any shard, fewer than two classes, a class that `classes` does not have,
    /// an image without a label, or both layouts at once.
    explicit TarImages(std::vector<std::filesystem::path> shards,
                       const std::vector<std::string>& classes = {});

    std::uint32_t size() const override { return static_cast<std::uint32_t>(images_.size()); }
    std::int64_t label(std::uint32_t index) const override { return images_[index].label; }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::string digest() const override;
    std::string where(std::uint32_t index) const override;
    Result<std::string> read(std::uint32_t index) const override;
    std::vector<std::string> problems() const override { return problems_; }

  private:
    struct Image {
        std::uint64_t offset;
        std::uint32_t bytes;
        std::uint32_t shard;
        std::uint32_t label;
    };
    using ImagesOfClass = std::map<std::string, std::vector<Image>>;
    void add_shard(std::uint32_t shard, ImagesOfClass& images_of_class);
    void number_classes(const ImagesOfClass& images_of_class, const std::vector<std::string>& classes);

    std::vector<std::filesystem::path> shards_;
    std::vector<std::string> classes_;
    std::vector<Image> images_;
    std::vector<std::string> problems_;
    bool folders_ = false;  ///< the layouts seen
    bool pairs_ = false;
};

}  // namespace joulemark::train
