// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <unistd.h>

#include "core/files.h"

namespace joulemark::train {
namespace {

std::mutex& library_mutex() {
    static std::mutex mutex;
    return mutex;
}

/// Owns an identifier of the library. Made and destroyed under library_mutex().
class Handle {
  public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close close) : id_(id), close_(close) {}
    ~Handle() {
        if (id_ >= 0) {
            close_(id_);
        }
    }
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&&) = delete;
    explicit operator bool() const { return id_ >= 0; }
    hid_t get() const { return id_; }

  private:
    hid_t id_;
    Close close_;
};

Handle open_file(const std::filesystem::path& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures become our sentences
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        throw bad_input("there is no file {}", path.string());
    }
    if (!files::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC))) {
        throw UnreadableHdf5(ExitCode::bad_input,
                             fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    }
    Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file) {
        throw UnreadableHdf5(
            ExitCode::bad_input,
            fmt::format("{} cannot be opened as an HDF5 file: it is of another format, or cut off",
                        path.string()));
    }
    return file;
}

/// Names of all data sets below the root, as "fields" or "group/fields".
std::vector<std::string> dataset_names(hid_t file) {
    std::vector<std::string> names;
    const auto add = [](hid_t, const char* name, const H5O_info_t* info, void* into) -> herr_t {
        if (info->type == H5O_TYPE_DATASET) {
            static_cast<std::vector<std::string>*>(into)->emplace_back(name);
        }
        return 0;
    };
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add, &names, H5O_INFO_BASIC);
    return names;
}

Handle open_dataset(const Handle& file, const std::filesystem::path& path, const std::string& name) {
    Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset) {
        const std::vector<std::string> names = dataset_names(file.get());
        throw bad_input("{} has no data set '{}': it holds {}", path.string(), name,
                        names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
    return dataset;
}

std::vector<std::int64_t> shape_of(const Handle& dataset) {
    const Handle space(H5Dget_space(dataset.get()), H5Sclose);
    std::vector<hsize_t> extents(
        static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.get()))));
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    return {extents.begin(), extents.end()};
}

/// Where the values lie in the file, if they do so in one piece as this machine's floats.
std::optional<off_t> plain_offset(const Handle& dataset, const Handle& type) {
    const Handle creation(H5Dget_create_plist(dataset.get()), H5Pclose);
    const haddr_t offset = H5Dget_offset(dataset.get());
    const bool plain = H5Pget_layout(creation.get()) == H5D_CONTIGUOUS && offset != HADDR_UNDEF &&
                       H5Pget_external_count(creation.get()) == 0 &&
                       H5Tequal(type.get(), H5T_NATIVE_FLOAT) > 0;
    return plain ? std::optional(static_cast<off_t>(offset)) : std::nullopt;
}

/// The whole of a range, or how it failed.
std::optional<std::string> read_fully(int fd, char* out, std::size_t bytes, off_t offset) {
    while (bytes > 0) {
        const ssize_t got = pread(fd, out, bytes, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0 ? "it is cut off" : std::strerror(errno);
        }
        out += got;
        offset += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return std::nullopt;
}

}  // namespace

struct Hdf5Array::State {
    std::filesystem::path path;
    std::string name;
    Handle file;
    Handle dataset;
    std::vector<std::int64_t> shape;
    std::optional<off_t> offset;
    files::Descriptor descriptor;  ///< with `offset`

    std::optional<std::string> read_plain(std::span<const std::int64_t> begin,
                                          std::span<const std::int64_t> count, float* out) const;
    bool read_by_library(std::span<const std::int64_t> begin, std::span<const std::int64_t> count,
                         float* out) const;
};

Hdf5Array::Hdf5Array(const std::filesystem::path& path, const std::string& name) {
    const std::lock_guard lock(library_mutex());
    Handle file = open_file(path);
    Handle dataset = open_dataset(file, path, name);
    const Handle type(H5Dget_type(dataset.get()), H5Tclose);
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
        throw bad_input("the data set '{}' of {} does not hold numbers", name, path.string());
    }
    const auto shape = shape_of(dataset);
    const auto offset = shape.empty() ? std::nullopt : plain_offset(dataset, type);
    files::Descriptor descriptor(offset ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
    state_ = std::make_unique<State>(State{path, name, std::move(file), std::move(dataset), shape,
                                           descriptor ? offset : std::nullopt, std::move(descriptor)});
}

Hdf5Array::~Hdf5Array() {
    const std::lock_guard lock(library_mutex());
    state_.reset();
}

Hdf5Array::Hdf5Array(Hdf5Array&&) noexcept = default;
Hdf5Array& Hdf5Array::operator=(Hdf5Array&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

const std::vector<std::int64_t>& Hdf5Array::shape() const {
    return state_->shape;
}
const std::filesystem::path& Hdf5Array::path() const {
    return state_->path;
}
bool Hdf5Array::lock_free() const {
    return state_->offset.has_value();
}

std::optional<Failure> Hdf5Array::read(std::span<const std::int64_t> begin,
                                       std::span<const std::int64_t> count, float* out) const {
    std::optional<std::string> problem;
    if (state_->offset) {
        problem = state_->read_plain(begin, count, out);
    } else if (!state_->read_by_library(begin, count, out)) {
        problem = "the HDF5 library cannot read this part";
    }
    if (!problem) {
        return std::nullopt;
    }
    return Failure{fmt::format("{}: '{}' at [{}] cannot be read: {}", state_->path.string(), state_->name,
                               fmt::join(begin, ", "), *problem),
                   "copy the file anew"};
}

std::optional<std::string> Hdf5Array::State::read_plain(std::span<const std::int64_t> begin,
                                                        std::span<const std::int64_t> count,
                                                        float* out) const {
    std::vector<std::int64_t> stride(shape.size(), 1);
    for (std::size_t d = shape.size() - 1; d > 0; --d) {
        stride[d - 1] = stride[d] * shape[d];
    }
    // Trailing dimensions that are read whole make one run with the dimension before them.
    std::size_t last = shape.size() - 1;
    while (last > 0 && count[last] == shape[last]) {
        --last;
    }
    const std::int64_t run = count[last] * stride[last];
    std::vector<std::int64_t> index(begin.begin(), begin.end());
    for (std::size_t d = 1; d > 0;) {
        const std::int64_t element =
            std::inner_product(index.begin(), index.end(), stride.begin(), std::int64_t{0});
        if (auto problem = read_fully(descriptor.get(), reinterpret_cast<char*>(out),
                                      static_cast<std::size_t>(run) * sizeof(float),
                                      *offset + static_cast<off_t>(sizeof(float)) * element)) {
            return problem;
        }
        out += run;
        for (d = last; d > 0 && ++index[d - 1] == begin[d - 1] + count[d - 1]; --d) {
            index[d - 1] = begin[d - 1];
        }
    }
    return std::nullopt;
}

bool Hdf5Array::State::read_by_library(std::span<const std::int64_t> begin,
                                       std::span<const std::int64_t> count, float* out) const {
    const std::lock_guard lock(library_mutex());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const std::vector<hsize_t> start(begin.begin(), begin.end());
    const std::vector<hsize_t> extent(count.begin(), count.end());
    const Handle on_disk(H5Dget_space(dataset.get()), H5Sclose);
    const Handle in_memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                           H5Sclose);
    return (extent.empty() || H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, start.data(), nullptr,
                                                  extent.data(), nullptr) >= 0) &&
           H5Dread(dataset.get(), H5T_NATIVE_FLOAT, in_memory.get(), on_disk.get(), H5P_DEFAULT, out) >= 0;
}

}  // namespace joulemark::train
