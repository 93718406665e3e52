// SPDX-License-Identifier: Apache-2.0
#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace joulemark::train {
namespace {

constexpr int fraction_bits = 15;
constexpr std::int32_t half = 1 << (fraction_bits - 1);

/// For one output pixel: the first input pixel and the weights of it and the following ones, summing to 2^15.
struct Taps {
    int first = 0;
    int count = 0;
    std::vector<std::int32_t> weights;
};

/// A triangle filter over input pixels of the range begin .. begin+length that a box covers, per output
/// pixel.
std::vector<Taps> triangle_taps(double begin, double length, int input_size, int output_size) {
    const double scale = length / output_size;
    const double support = std::max(scale, 1.0);
    const int low = std::max(0, static_cast<int>(std::floor(begin)));
    const int high = std::min(input_size, static_cast<int>(std::ceil(begin + length)));
    std::vector<Taps> all(static_cast<std::size_t>(output_size));
    std::vector<double> exact;
    for (int out = 0; out < output_size; ++out) {
        const double centre = begin + (out + 0.5) * scale;
        Taps& taps = all[static_cast<std::size_t>(out)];
        taps.first = std::clamp(static_cast<int>(centre - support + 0.5), low, high - 1);
        const int last = std::clamp(static_cast<int>(centre + support + 0.5), taps.first + 1, high);
        taps.count = last - taps.first;
        exact.assign(static_cast<std::size_t>(taps.count), 0);
        double sum = 0;
        for (int i = 0; i < taps.count; ++i) {
            const double distance = std::abs(taps.first + i + 0.5 - centre) / support;
            exact[static_cast<std::size_t>(i)] = std::max(0.0, 1 - distance);
            sum += exact[static_cast<std::size_t>(i)];
        }
        // Rounding goes to the largest weight: a constant image stays constant.
        std::int32_t left = 1 << fraction_bits;
        std::size_t largest = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
            taps.weights.push_back(
                static_cast<std::int32_t>(std::lround(exact[i] / sum * (1 << fraction_bits))));
            left -= taps.weights.back();
            largest = exact[i] > exact[largest] ? i : largest;
        }
        taps.weights[largest] += left;
    }
    return all;
}

std::uint8_t to_byte(std::int32_t fixed) {
    return static_cast<std::uint8_t>(std::clamp((fixed + half) >> fraction_bits, 0, 255));
}

}  // namespace

void resample(const ImageView& image, const Box& box, int width, int height, bool mirror, std::uint8_t* out) {
    const std::vector<Taps> columns = triangle_taps(box.x, box.width, image.width, width);
    const std::vector<Taps> rows = triangle_taps(box.y, box.height, image.height, height);
    const std::size_t row_bytes = 3 * static_cast<std::size_t>(width);

    // Across first, for the rows that are needed; a row of the intermediate image is as wide as the result.
    const int first_row = rows.front().first;
    const int last_row = rows.back().first + rows.back().count;
    std::vector<std::uint8_t> across(row_bytes * static_cast<std::size_t>(last_row - first_row));
    for (int y = first_row; y < last_row; ++y) {
        const std::uint8_t* source = image.pixels + y * image.stride;
        std::uint8_t* target = across.data() + row_bytes * static_cast<std::size_t>(y - first_row);
        for (int x = 0; x < width; ++x) {
            const Taps& taps = columns[static_cast<std::size_t>(mirror ? width - 1 - x : x)];
            const std::uint8_t* pixel = source + 3 * taps.first;
            std::int32_t red = 0;
            std::int32_t green = 0;
            std::int32_t blue = 0;
            for (int i = 0; i < taps.count; ++i, pixel += 3) {
                const std::int32_t weight = taps.weights[static_cast<std::size_t>(i)];
                red += weight * pixel[0];
                green += weight * pixel[1];
                blue += weight * pixel[2];
            }
            target[3 * x] = to_byte(red);
            target[3 * x + 1] = to_byte(green);
            target[3 * x + 2] = to_byte(blue);
        }
    }

    // Then down: whole rows at a time, which the compiler vectorises.
    std::vector<std::int32_t> sums(row_bytes);
    for (int y = 0; y < height; ++y) {
        const Taps& taps = rows[static_cast<std::size_t>(y)];
        std::ranges::fill(sums, 0);
        for (int i = 0; i < taps.count; ++i) {
            const std::int32_t weight = taps.weights[static_cast<std::size_t>(i)];
            const std::uint8_t* row =
                across.data() + row_bytes * static_cast<std::size_t>(taps.first + i - first_row);
            for (std::size_t byte = 0; byte < row_bytes; ++byte) {
                sums[byte] += weight * row[byte];
            }
        }
        std::ranges::transform(sums, out + row_bytes * static_cast<std::size_t>(y), to_byte);
    }
}

}  // namespace joulemark::train
