// SPDX-License-Identifier: Apache-2.0
#include "data/tar_images.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/files.h"
#include "data/digest.h"
#include "data/tar.h"

namespace joulemark::train {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longest_label = 64;
constexpr std::int64_t most_classes = 1'000'000;

std::string_view base_of(std::string_view name) {
    return name.substr(name.find_last_of('/') + 1);
}

/// WebDataset's key: the name up to the first dot of its last part.
std::string key_of(std::string_view name) {
    const std::size_t base = name.size() - base_of(name).size();
    return std::string(name.substr(0, name.find('.', base)));
}

/// The folder that the file is in, or nothing.
std::optional<std::string> folder_of(const std::string& name) {
    const std::string folder = fs::path(name).lexically_normal().parent_path().filename().string();
    return folder.empty() || folder == "." ? std::nullopt : std::optional(folder);
}

/// What a .cls file says, without leading zeros; nothing if that is no number.
std::optional<std::string> class_number(std::string_view text) {
    const auto label = csv::integer(text.substr(0, text.find_last_not_of(" \r\n") + 1));
    return label && *label >= 0 && *label <= most_classes ? std::optional(std::to_string(*label))
                                                          : std::nullopt;
}

}  // namespace

std::vector<fs::path> tar_shards(const fs::path& path) {
    std::error_code error;
    if (path.extension() == ".tar" && !fs::is_directory(path, error)) {
        return {path};
    }
    std::vector<fs::path> shards;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code unreadable;
        if (entry->path().extension() == ".tar" && entry->is_regular_file(unreadable)) {
            shards.push_back(entry->path());
        }
    }
    std::ranges::sort(shards);
    return shards;
}

TarImages::TarImages(std::vector<fs::path> shards, const std::vector<std::string>& classes)
    : shards_(std::move(shards)) {
    ImagesOfClass images_of_class;
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
        add_shard(shard, images_of_class);
    }
    if (images_of_class.empty()) {
        throw bad_input(
            "{}{} holds no labelled JPEG file: a shard has class/name.jpg, or pairs key.jpg and key.cls{}",
            shards_.front().string(), shards_.size() > 1 ? " and the other shards beside it" : "",
            problems_.empty() ? "" : " (" + problems_.front() + ")");
    }
    if (folders_ && pairs_) {
        throw bad_input("the shards beside {} mix class folders with .cls files: use one of the two",
                        shards_.front().string());
    }
    number_classes(images_of_class, classes);
}

void TarImages::add_shard(std::uint32_t shard, ImagesOfClass& images_of_class) {
    struct Group {
        std::vector<Image> images;
        std::optional<std::string> label;
    };
    std::map<std::string, Group> groups;  // by key
    const std::string path = shards_[shard].string();
    TarReader reader(shards_[shard]);
    std::size_t found = 0;
    while (true) {
        const auto next = reader.next();
        if (!next) {
            problems_.push_back(fmt::format("{}; images used of it: {}", next.failure().reason, found));
            break;
        }
        if (!*next) {
            break;
        }
        const TarReader::Entry& entry = **next;
        if (is_jpeg_name(base_of(entry.name)) && entry.bytes <= std::numeric_limits<std::uint32_t>::max()) {
            groups[key_of(entry.name)].images.push_back(
                {entry.offset, static_cast<std::uint32_t>(entry.bytes), shard, 0});
            ++found;
        } else if (entry.name.ends_with(".cls") && entry.bytes <= longest_label) {
            if (const auto text = reader.content(entry)) {
                groups[key_of(entry.name)].label = *text;
            }
        }
    }
    for (const auto& [key, group] : groups) {
        if (group.images.empty()) {
            continue;
        }
        const auto name = group.label ? class_number(*group.label) : folder_of(key);
        if (!name && group.label) {
            throw bad_input("{}: {}.cls holds '{}', which is no class number", path, key, *group.label);
        }
        if (!name) {
            throw bad_input("{}: the image {} is in no class folder and has no {}.cls", path, key, key);
        }
        (group.label ? pairs_ : folders_) = true;
        auto& images = images_of_class[*name];
        images.insert(images.end(), group.images.begin(), group.images.end());
    }
}

void TarImages::number_classes(const ImagesOfClass& images_of_class,
                               const std::vector<std::string>& classes) {
    const std::string first_shard = shards_.front().string();
    for (const auto& [name, images] : images_of_class) {
        if (!pairs_) {
            classes_.push_back(name);
        } else {
            for (auto label = classes_.size(); label <= static_cast<std::size_t>(*csv::integer(name));
                 ++label) {
                classes_.push_back(std::to_string(label));
            }
        }
    }
    if (classes_.size() < 2 && classes.empty()) {
        throw bad_input("the shards beside {} hold one class only: at least two are needed", first_shard);
    }
    for (const auto& [name, images] : images_of_class) {
        const std::vector<std::string>& known = classes.empty() ? classes_ : classes;
        const auto found = std::ranges::find(known, name);
        if (found == known.end()) {
            throw bad_input("{} has the class '{}', which the training images do not have", first_shard,
                            name);
        }
        for (Image image : images) {
            image.label = static_cast<std::uint32_t>(found - known.begin());
            images_.push_back(image);
        }
    }
    if (!classes.empty()) {
        classes_ = classes;
    }
    images_.shrink_to_fit();
}

std::string TarImages::digest() const {
    Digest digest;
    for (const std::string& name : classes_) {
        digest.add(name);
    }
    for (const Image& image : images_) {
        digest.add(image.label).add(image.shard).add(image.offset).add(image.bytes);
    }
    return digest.text();
}

std::string TarImages::where(std::uint32_t index) const {
    return fmt::format("{} at byte {}", shards_[images_[index].shard].string(), images_[index].offset);
}

Result<std::string> TarImages::read(std::uint32_t index) const {
    const Image& image = images_[index];
    // Opened anew each time: a data set can have more shards than a process may have open files.
    const files::Descriptor file(open(shards_[image.shard].c_str(), O_RDONLY | O_CLOEXEC));
    std::string content(image.bytes, '\0');
    std::size_t done = 0;
    while (file && done < content.size()) {
        const ssize_t got = pread(file.get(), content.data() + done, content.size() - done,
                                  static_cast<off_t>(image.offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += static_cast<std::size_t>(got);
    }
    if (done < content.size()) {
        return Failure{fmt::format("cannot read {}", where(index)), "check that the file is there whole"};
    }
    return content;
}

}  // namespace joulemark::train
