// SPDX-License-Identifier: Apache-2.0
#include "data/image_source.h"

#include <algorithm>
#include <cctype>

#include "data/image_files.h"
#include "data/tar_images.h"

namespace joulemark::train {

bool is_jpeg_name(std::string_view name) {
    const auto ends = [&](std::string_view end) {
        return name.size() > end.size() &&
               std::ranges::equal(name.substr(name.size() - end.size()), end, [](char a, char b) {
                   return std::tolower(static_cast<unsigned char>(a)) == b;
               });
    };
    return (ends(".jpg") || ends(".jpeg")) && name.front() != '.';
}

std::unique_ptr<ImageSource> open_images_at(const std::filesystem::path& path,
                                            const std::vector<std::string>& classes) {
    if (std::vector<std::filesystem::path> shards = tar_shards(path); !shards.empty()) {
        return std::make_unique<TarImages>(std::move(shards), classes);
    }
    return std::make_unique<ImageFiles>(path, classes);
}

}  // namespace joulemark::train
