// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_source.h"

namespace joulemark::train {

/// The JPEG files of a folder with one sub-folder per class. Classes and files are in the order of their
/// names, so that every rank numbers them alike whatever the file system's order. Names are kept in one
/// block: ImageNet takes 35 MB.
class ImageFiles final : public ImageSource {
  public:
    /// Reads the folder. Files that do not end in .jpg or .jpeg (any case) and hidden entries are passed
    /// over. With `classes`, those are the classes and any other is an error: a validation folder must agree
    /// with its training folder. Throws bad_input: no such folder, fewer than two classes, a class without a
    /// JPEG file.
    explicit ImageFiles(const std::filesystem::path& folder, const std::vector<std::string>& classes = {});

    std::uint32_t size() const override { return static_cast<std::uint32_t>(files_.size()); }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::int64_t label(std::uint32_t index) const override { return files_[index].label; }
    std::string digest() const override;
    std::string where(std::uint32_t index) const override { return path(index).string(); }
    Result<std::string> read(std::uint32_t index) const override;
    std::filesystem::path path(std::uint32_t index) const;

  private:
    struct File {
        std::uint32_t label;
        std::uint32_t name_length;
        std::uint64_t name_begin;
    };
    void add_class(std::uint32_t label);

    std::filesystem::path folder_;
    std::vector<std::string> classes_;
    std::vector<File> files_;
    std::string names_;
};

/// Where the training and the validation images of `folder` are: folder/train and folder/val when the former
/// exists, else the folder itself and none (an empty path).
struct ImageFolders {
    std::filesystem::path train;
    std::filesystem::path validation;
};
ImageFolders find_image_folders(const std::filesystem::path& folder);

}  // namespace joulemark::train
