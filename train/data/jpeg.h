// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/resample.h"

namespace joulemark::train {

/// A decoded part of a JPEG: `view` sees the pixels that `pixels` owns, and `box` is the wanted rectangle in
/// view's pixels.
struct DecodedCrop {
    std::vector<std::uint8_t> pixels;
    ImageView view;
    Box box;
};

/// Chooses the rectangle to decode from the image's size, in whole pixels inside the image.
using ChooseCrop = std::function<Box(int width, int height)>;

/// Decodes the part of `file` (the bytes of a JPEG) that `choose` asks for, as RGB; grey and CMYK images are
/// converted.
///
/// Only what is needed is decoded: rows above, below and blocks beside the rectangle are skipped, and where
/// the rectangle is at least twice as large as `target_width` x `target_height` the inverse DCT is done at
/// 1/2, 1/4 or 1/8 scale, never below the target size. Fails, with libjpeg's words, for a file that is no
/// JPEG, ends early, or is damaged in a part that was read.
Result<DecodedCrop> decode_jpeg(std::span<const std::uint8_t> file, const ChooseCrop& choose,
                                int target_width, int target_height);

/// The bytes of a JPEG of an interleaved RGB image, at `quality` 1..100.
std::vector<std::uint8_t> encode_jpeg(const ImageView& image, int quality);

}  // namespace joulemark::train
