// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "data/random.h"
#include "data/resample.h"

namespace joulemark::train {

/// Random resized crop (Szegedy et al. 2015; torchvision's defaults): area 0.08-1 of the image, aspect ratio
/// 3/4-4/3, drawn up to ten times until it fits, else the largest centred rectangle of an allowed ratio.
inline Box random_resized_crop(int width, int height, KeyedRandom& random) {
    const double log_ratio = std::log(4.0 / 3.0);
    for (int attempt = 0; attempt < 10; ++attempt) {
        const double area = random.uniform(0.08, 1) * width * height;
        const double ratio = std::exp(random.uniform(-log_ratio, log_ratio));
        const auto w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
        const auto h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
        if (w > 0 && h > 0 && w <= width && h <= height) {
            return {static_cast<double>(random.below(static_cast<std::uint64_t>(width - w + 1))),
                    static_cast<double>(random.below(static_cast<std::uint64_t>(height - h + 1))), double(w),
                    double(h)};
        }
    }
    const double w = std::max(1.0, std::round(std::min<double>(width, height * 4.0 / 3.0)));
    const double h = std::max(1.0, std::round(std::min<double>(height, width * 4.0 / 3.0)));
    return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

/// The square that "resize the shorter side to 256/224 of the crop, then crop the centre" takes from the
/// image.
inline Box centre_crop(int width, int height) {
    const double side = std::min(width, height) * 224.0 / 256.0;
    return {(width - side) / 2, (height - side) / 2, side, side};
}

}  // namespace joulemark::train
