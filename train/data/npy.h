// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace joulemark::train {

struct NpyArray {
    std::vector<std::int64_t> shape;
    std::vector<float> values;  ///< row by row
};

/// A NumPy file of little-endian float32 or float64 values in C order. Throws bad_input naming the file: not
/// there, another format or type, or cut off.
NpyArray read_npy(const std::filesystem::path& path);

}  // namespace joulemark::train
