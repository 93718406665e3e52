// SPDX-License-Identifier: Apache-2.0
#include "data/jpeg.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/random.h"

namespace joulemark::train {
namespace {

constexpr int width = 203;
constexpr int height = 151;

/// Smooth content with some noise, so that JPEG's own loss stays small.
std::vector<std::uint8_t> picture() {
    std::vector<std::uint8_t> pixels;
    KeyedRandom random{9};
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            pixels.push_back(static_cast<std::uint8_t>(x));
            pixels.push_back(static_cast<std::uint8_t>(y));
            pixels.push_back(static_cast<std::uint8_t>(120 + random.below(6)));
        }
    }
    return pixels;
}

std::vector<std::uint8_t> jpeg() {
    const auto pixels = picture();
    return encode_jpeg({pixels.data(), width, height, 3 * width}, 95);
}

ChooseCrop exactly(Box box) {
    return [box](int, int) { return box; };
}

/// The decoded box at its own resolution against the original's rectangle.
double mean_difference(const Box& box, int target) {
    const auto original = picture();
    const auto decoded = decode_jpeg(jpeg(), exactly(box), target, target);
    EXPECT_TRUE(decoded);
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(3 * target * target));
    std::vector<std::uint8_t> got(expected.size());
    resample({original.data(), width, height, 3 * width}, box, target, target, false, expected.data());
    resample(decoded->view, decoded->box, target, target, false, got.data());
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        sum += std::abs(int(got[i]) - int(expected[i]));
    }
    return sum / double(got.size());
}

TEST(DecodeJpeg, GivesTheAskedForRectangle) {
    // Rectangles at edges, inside, off the block grid; with and without reduction by the inverse DCT.
    for (const Box box : {Box{0, 0, width, height}, Box{17, 33, 60, 50}, Box{100, 90, 103, 61},
                          Box{202, 150, 1, 1}, Box{0, 149, 203, 2}}) {
        for (const int target : {8, 32, 64, 300}) {
            EXPECT_LT(mean_difference(box, target), 3.0) << box.x << ' ' << box.y << " to " << target;
        }
    }
}

TEST(DecodeJpeg, DecodesNoMoreThanNeeded) {
    const auto whole = decode_jpeg(jpeg(), exactly({0, 0, width, height}), 1000, 1000);
    const auto part = decode_jpeg(jpeg(), exactly({100, 80, 40, 30}), 1000, 1000);
    const auto reduced = decode_jpeg(jpeg(), exactly({0, 0, width, height}), 32, 32);
    ASSERT_TRUE(whole && part && reduced);
    EXPECT_EQ(whole->view.width, width);
    EXPECT_EQ(part->view.height, 30);
    EXPECT_LE(part->view.width, 40 + 32);             // whole blocks at both sides
    EXPECT_EQ(reduced->view.width, (width + 3) / 4);  // 1/4 leaves 51 x 38, 1/8 would be under 32
}

TEST(DecodeJpeg, RefusesWhatIsCutDamagedOrNoJpeg) {
    const auto good = jpeg();
    const auto fails = [](std::vector<std::uint8_t> file) {
        const auto decoded = decode_jpeg(file, exactly({0, 0, 8, 8}), 8, 8);
        EXPECT_FALSE(decoded);
        return decoded ? std::string() : decoded.failure().reason;
    };
    // Cut behind the part that is needed: still refused.
    EXPECT_NE(fails({good.begin(), good.begin() + std::ptrdiff_t(good.size() * 9 / 10)}).find("ends before"),
              std::string::npos);
    EXPECT_FALSE(fails({good.begin(), good.begin() + 100}).empty());
    EXPECT_FALSE(fails({}).empty());
    EXPECT_FALSE(fails({'G', 'I', 'F', '8', '9', 'a', 0, 0, 0, 0}).empty());
}

TEST(DecodeJpeg, SurvivesAnyDamage) {
    const auto good = jpeg();
    KeyedRandom random{11};
    for (int trial = 0; trial < 300; ++trial) {
        auto file = good;
        for (int damage = 0; damage < 20; ++damage) {
            file[random.below(file.size())] = static_cast<std::uint8_t>(random.below(256));
        }
        const auto decoded = decode_jpeg(
            file,
            [](int w, int h) {
                return Box{0, 0, double(w), double(h)};
            },
            64, 64);
        if (!decoded) {
            ASSERT_FALSE(decoded.failure().reason.empty());
        }
    }
}

}  // namespace
}  // namespace joulemark::train
