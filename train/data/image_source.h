// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"

namespace joulemark::train {

/// Labelled JPEG files by index, wherever they are stored. All members may be called from several threads at
/// once.
class ImageSource {
  public:
    virtual ~ImageSource() = default;
    virtual std::uint32_t size() const = 0;
    virtual std::int64_t label(std::uint32_t index) const = 0;
    /// Differs for other classes or names of images.
    virtual std::string digest() const = 0;
    virtual const std::vector<std::string>& classes() const = 0;
    /// Where the image is, for sentences about it.
    virtual std::string where(std::uint32_t index) const = 0;
    /// The bytes of the JPEG.
    virtual Result<std::string> read(std::uint32_t index) const = 0;
    /// What was found wrong when the source was opened, a sentence each; what is left is used.
    virtual std::vector<std::string> problems() const { return {}; }
};

/// Files end in .jpg or .jpeg, in any case, and are not hidden.
bool is_jpeg_name(std::string_view name);

/// The images of a folder: tar shards where it holds any (TarImages), else a sub-folder per class
/// (ImageFiles). Also of one .tar file. With `classes`, those are the classes and any other is an error.
/// Throws bad_input.
std::unique_ptr<ImageSource> open_images_at(const std::filesystem::path& path,
                                            const std::vector<std::string>& classes = {});

}  // namespace joulemark::train
