// SPDX-License-Identifier: Apache-2.0
#include "data/make_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "data/jpeg.h"
#include "data/random.h"

namespace joulemark::train {
namespace {

std::vector<std::uint8_t> image_of_class(std::uint64_t seed, int label, std::uint64_t sample, int size) {
    KeyedRandom of_class{seed, 1, static_cast<std::uint64_t>(label)};
    std::array<double, 3> low{};
    std::array<double, 3> high{};
    for (std::size_t channel = 0; channel < 3; ++channel) {
        low[channel] = of_class.uniform(0, 140);
        high[channel] = of_class.uniform(115, 255);
    }
    const double angle = of_class.uniform(0, std::numbers::pi);
    const double stripes = of_class.uniform(2, 7);

    KeyedRandom random{seed, 2, static_cast<std::uint64_t>(label), sample};
    const bool upright = random.below(2) == 0;
    const int longer = size + static_cast<int>(random.below(static_cast<std::uint64_t>(size / 3 + 1)));
    const int width = upright ? size : longer;
    const int height = upright ? longer : size;
    const double phase = random.uniform(0, 2 * std::numbers::pi);
    const double brightness = random.uniform(0.7, 1.1);
    const double wave = 2 * std::numbers::pi * stripes / size;
    std::vector<std::uint8_t> pixels(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    auto* pixel = pixels.data();
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const double mix =
                0.5 + 0.5 * std::sin(wave * (x * std::cos(angle) + y * std::sin(angle)) + phase);
            for (std::size_t channel = 0; channel < 3; ++channel) {
                const double value = brightness * (low[channel] + (high[channel] - low[channel]) * mix) +
                                     random.uniform(-20, 20);
                *pixel++ = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
            }
        }
    }
    return encode_jpeg({pixels.data(), width, height, 3 * static_cast<std::ptrdiff_t>(width)}, 90);
}

}  // namespace

void make_images(const ImageFolderRecipe& recipe) {
    std::error_code error;
    if (std::filesystem::is_directory(recipe.folder, error) &&
        !std::filesystem::is_empty(recipe.folder, error)) {
        throw bad_input("{} is not empty: name a new folder, or remove what is in it", recipe.folder.string());
    }
    const auto write = [&](std::string_view part, int per_class, std::uint64_t first_sample) {
        for (int label = 0; label < recipe.classes; ++label) {
            const auto folder = recipe.folder / part / fmt::format("class{:03}", label);
            files::make_directories(folder);
            for (int i = 0; i < per_class; ++i) {
                const auto bytes = image_of_class(recipe.seed, label,
                                                  first_sample + static_cast<std::uint64_t>(i), recipe.size);
                files::write_atomically(folder / fmt::format("{:05}.jpg", i),
                                        {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            }
        }
    };
    write("train", recipe.per_class, 0);
    write("val", recipe.validation_per_class, static_cast<std::uint64_t>(recipe.per_class));
}

}  // namespace joulemark::train
