// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace joulemark::train {

/// A generated image folder: DIR/train and DIR/val with one folder per class, as JPEG. A class is a colour
/// gradient and a stripe pattern of its own; position, brightness and noise vary. A small network learns it
/// in a few epochs.
struct ImageFolderRecipe {
    std::filesystem::path folder;
    int classes = 4;
    int per_class = 64;
    int validation_per_class = 16;
    int size = 96;  ///< pixels of the shorter side; the longer one is up to a third longer
    std::uint64_t seed = 1;
};

/// Writes the folder; the same recipe gives the same bytes. Throws bad_input when there is something in it,
/// environment_error when it cannot be written.
void make_images(const ImageFolderRecipe& recipe);

}  // namespace joulemark::train
