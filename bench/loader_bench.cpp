// SPDX-License-Identifier: Apache-2.0
// What a loader thread does for a training image - read, decode, random resized crop, flip - on one core:
// `loader_bench FOLDER IMAGES SIZE` prints images per second of CPU time. loader_vs_pillow.py runs it beside
// Pillow.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "data/crop.h"
#include "data/image_files.h"
#include "data/jpeg.h"

int main(int argc, char** argv) {
    using namespace joulemark;
    using namespace joulemark::train;
    if (argc != 4) {
        fmt::print(stderr, "usage: loader_bench FOLDER IMAGES SIZE\n");
        return 2;
    }
    try {
        const ImageFiles files(argv[1]);
        const auto images = std::min(files.size(), static_cast<std::uint32_t>(std::atoi(argv[2])));
        const int size = std::atoi(argv[3]);
        std::vector<std::uint8_t> out(3 * static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
        const std::clock_t begin = std::clock();  // of the process: a busy machine does not count
        for (std::uint32_t index = 0; index < images; ++index) {
            KeyedRandom random{1, index};
            const auto file = files.read(index);
            if (!file) {
                throw bad_input("{}", file.failure().reason);
            }
            const auto decoded = decode_jpeg(
                {reinterpret_cast<const std::uint8_t*>(file->data()), file->size()},
                [&](int width, int height) { return random_resized_crop(width, height, random); }, size,
                size);
            if (!decoded) {
                throw bad_input("{}: {}", files.where(index), decoded.failure().reason);
            }
            resample(decoded->view, decoded->box, size, size, random.below(2) == 1, out.data());
        }
        fmt::print("{:.2f}\n",
                   static_cast<double>(images) * CLOCKS_PER_SEC / static_cast<double>(std::clock() - begin));
        return 0;
    } catch (const Error& error) {
        fmt::print(stderr, "loader_bench: {}\n", error.what());
        return static_cast<int>(error.code());
    }
}
