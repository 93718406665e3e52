// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulemark::train {

/// An RGB image, interleaved, 8 bits a channel; row stride in bytes. Does not own its pixels.
struct ImageView {
    const std::uint8_t* pixels = nullptr;
    int width = 0;
    int height = 0;
    std::ptrdiff_t stride = 0;
};

/// A rectangle in pixels; may begin and end inside pixels.
struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};

/// Resizes `box` of `image` to width x height, written to `out` (interleaved RGB, 3*width*height bytes).
/// Bilinear with antialias: a triangle filter as wide as the reduction, 8-bit intermediate, fixed-point
/// weights, as Pillow and torchvision (antialias=True) do. Pixels outside the box do not contribute. `mirror`
/// flips left and right.
void resample(const ImageView& image, const Box& box, int width, int height, bool mirror, std::uint8_t* out);

}  // namespace joulemark::train
