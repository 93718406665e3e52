// SPDX-License-Identifier: Apache-2.0
#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "data/random.h"

namespace joulemark::train {
namespace {

std::vector<std::uint8_t> noise(int width, int height) {
    KeyedRandom random{3};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * width * height));
    std::ranges::generate(pixels, [&] { return static_cast<std::uint8_t>(random.below(256)); });
    return pixels;
}

std::vector<std::uint8_t> resized(const std::vector<std::uint8_t>& pixels, int width, int height,
                                  const Box& box, int to_width, int to_height, bool mirror = false) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * to_width * to_height));
    resample({pixels.data(), width, height, 3 * width}, box, to_width, to_height, mirror, out.data());
    return out;
}

/// The definition in floating point, in two dimensions at once: a triangle filter as wide as the reduction.
double reference(const std::vector<std::uint8_t>& pixels, int width, const Box& box, int to_width,
                 int to_height, int x, int y, int channel) {
    const double scale_x = box.width / to_width;
    const double scale_y = box.height / to_height;
    const double centre_x = box.x + (x + 0.5) * scale_x;
    const double centre_y = box.y + (y + 0.5) * scale_y;
    double sum = 0;
    double weights = 0;
    for (int row = int(box.y); row < int(box.y + box.height); ++row) {
        for (int column = int(box.x); column < int(box.x + box.width); ++column) {
            const double weight =
                std::max(0.0, 1 - std::abs(column + 0.5 - centre_x) / std::max(1.0, scale_x)) *
                std::max(0.0, 1 - std::abs(row + 0.5 - centre_y) / std::max(1.0, scale_y));
            sum += weight * pixels[static_cast<std::size_t>(3 * (row * width + column) + channel)];
            weights += weight;
        }
    }
    return sum / weights;
}

TEST(Resample, AgreesWithTheFilterItClaims) {
    const auto pixels = noise(40, 30);
    for (const auto& [box, to_width, to_height] :
         {std::tuple{Box{0, 0, 40, 30}, 13, 11}, std::tuple{Box{5, 3, 21, 17}, 8, 8},
          std::tuple{Box{2, 2, 6, 5}, 16, 16}, std::tuple{Box{7, 9, 1, 1}, 3, 3}}) {
        const auto out = resized(pixels, 40, 30, box, to_width, to_height);
        for (int y = 0; y < to_height; ++y) {
            for (int x = 0; x < to_width; ++x) {
                for (int channel = 0; channel < 3; ++channel) {
                    // Two roundings to 8 bits: at most 1.1 off.
                    ASSERT_NEAR(out[static_cast<std::size_t>(3 * (y * to_width + x) + channel)],
                                reference(pixels, 40, box, to_width, to_height, x, y, channel), 1.1)
                        << to_width << " at " << x << ' ' << y;
                }
            }
        }
    }
}

TEST(Resample, LeavesAnImageOfTheSameSizeAlone) {
    const auto pixels = noise(9, 7);
    EXPECT_EQ(resized(pixels, 9, 7, {0, 0, 9, 7}, 9, 7), pixels);
}

TEST(Resample, KeepsAConstantImageConstant) {
    const std::vector<std::uint8_t> white(3 * 50 * 50, 255);
    const auto out = resized(white, 50, 50, {0.4, 1.3, 47.1, 45.9}, 17, 23);
    EXPECT_TRUE(std::ranges::all_of(out, [](std::uint8_t value) { return value == 255; }));
}

TEST(Resample, MirrorsLeftAndRight) {
    const auto pixels = noise(20, 20);
    const auto plain = resized(pixels, 20, 20, {0, 0, 20, 20}, 8, 8);
    const auto mirrored = resized(pixels, 20, 20, {0, 0, 20, 20}, 8, 8, true);
    for (std::size_t y = 0; y < 8; ++y) {
        for (std::size_t x = 0; x < 8; ++x) {
            ASSERT_EQ(mirrored[3 * (8 * y + x)], plain[3 * (8 * y + 7 - x)]);
        }
    }
}

}  // namespace
}  // namespace joulemark::train
