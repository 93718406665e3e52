// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace joulemark::train {

/// The file cannot be opened as HDF5: cut off, of another format, or no permission. One of many is passed over.
struct UnreadableHdf5 final : Error {
    using Error::Error;
};

/// A numeric data set of an HDF5 file, read in blocks as floats. Several threads may read at once: stored in
/// one piece as little-endian float32 it is read with pread and no lock; otherwise (chunks, compression,
/// another type) through the HDF5 library, which is not thread-safe in Debian, so one thread at a time in the
/// process.
class Hdf5Array {
  public:
    /// Throws UnreadableHdf5; bad_input: no such file, no such data set (the sentence names those there are),
    /// not numeric.
    Hdf5Array(const std::filesystem::path& file, const std::string& name);
    ~Hdf5Array();
    Hdf5Array(Hdf5Array&&) noexcept;
    Hdf5Array& operator=(Hdf5Array&&) noexcept;

    const std::vector<std::int64_t>& shape() const;
    const std::filesystem::path& path() const;
    /// "stored in one piece": reads need no lock.
    bool lock_free() const;

    /// The block of `count` elements from `begin`, both one per dimension and inside the shape, row by row
    /// into `out`. A failure names the file.
    std::optional<Failure> read(std::span<const std::int64_t> begin, std::span<const std::int64_t> count,
                                float* out) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace joulemark::train
