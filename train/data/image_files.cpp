// SPDX-License-Identifier: Apache-2.0
#include "data/image_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "data/digest.h"

namespace joulemark::train {
namespace {

namespace fs = std::filesystem;

template <typename Accept>
std::vector<std::string> sorted_names(const fs::path& folder, Accept accept) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (std::string name = entry->path().filename().string(); accept(*entry, name)) {
            names.push_back(std::move(name));
        }
    }
    if (error) {
        throw bad_input("cannot read the image folder {}: {}", folder.string(), error.message());
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace

ImageFiles::ImageFiles(const fs::path& folder, const std::vector<std::string>& classes) : folder_(folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
        throw bad_input(
            "there is no image folder {}: --dataset takes 'synthetic' or a folder with one sub-folder per "
            "class",
            folder.string());
    }
    classes_ = sorted_names(folder, [&](const fs::directory_entry& entry, std::string_view name) {
        return name.front() != '.' && entry.is_directory(ignored);
    });
    if (classes_.size() < 2) {
        throw bad_input(
            "the image folder {} has {} class folder{}: it needs one sub-folder per class, and at least two",
            folder.string(), classes_.size(), classes_.size() == 1 ? "" : "s");
    }
    if (!classes.empty()) {
        for (const std::string& name : classes_) {
            if (!std::ranges::binary_search(classes, name)) {
                throw bad_input("{} has the class '{}', which the training folder does not have",
                                folder.string(), name);
            }
        }
    }
    const std::vector<std::string> present = classes_;
    if (!classes.empty()) {
        classes_ = classes;
    }
    for (const std::string& name : present) {
        add_class(static_cast<std::uint32_t>(std::ranges::lower_bound(classes_, name) - classes_.begin()));
    }
    names_.shrink_to_fit();
    files_.shrink_to_fit();
}

void ImageFiles::add_class(std::uint32_t label) {
    const auto names =
        sorted_names(folder_ / classes_[label], [](const fs::directory_entry& entry, std::string_view name) {
            std::error_code unreadable;  // a pipe of that name would be waited for
            return is_jpeg_name(name) && entry.is_regular_file(unreadable);
        });
    if (names.empty()) {
        throw bad_input("the class folder {} has no JPEG file (.jpg, .jpeg)",
                        (folder_ / classes_[label]).string());
    }
    for (const std::string& name : names) {
        files_.push_back({label, static_cast<std::uint32_t>(name.size()), names_.size()});
        names_ += name;
    }
}

std::string ImageFiles::digest() const {
    Digest digest;
    for (const std::string& name : classes_) {
        digest.add(name);
    }
    for (const File& file : files_) {
        digest.add(file.label).add(file.name_length);
    }
    return digest.add(names_).text();
}

fs::path ImageFiles::path(std::uint32_t index) const {
    const File& file = files_[index];
    return folder_ / classes_[file.label] /
           std::string_view(names_).substr(file.name_begin, file.name_length);
}

Result<std::string> ImageFiles::read(std::uint32_t index) const {
    errno = 0;
    auto content = files::read(path(index));
    if (!content) {
        return Failure{fmt::format("cannot read {}: {}", where(index), std::strerror(errno)),
                       "check the file's permissions"};
    }
    return std::move(*content);
}

ImageFolders find_image_folders(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder / "train", ignored)) {
        return {folder, {}};
    }
    const fs::path validation = folder / "val";
    return {folder / "train", fs::is_directory(validation, ignored) ? validation : fs::path()};
}

}  // namespace joulemark::train
