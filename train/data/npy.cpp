// SPDX-License-Identifier: Apache-2.0
#include "data/npy.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"

namespace joulemark::train {
namespace {

/// What stands behind `'key':` in the header, a Python dictionary as NumPy writes it.
std::string_view entry(std::string_view header, std::string_view key) {
    const auto at = header.find(key);
    if (at == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = header.substr(at + key.size());
    return rest.substr(std::min(rest.size(), rest.find_first_not_of(": '\"")));
}

std::vector<std::int64_t> parse_shape(std::string_view tuple) {
    const std::string inside(tuple.substr(1, tuple.find(')') - 1));
    std::vector<std::string> fields;
    csv::split(inside, fields);
    std::vector<std::int64_t> shape;
    for (const std::string& field : fields) {
        const auto digits = field.find_first_not_of(' ');
        if (const auto extent = csv::integer(digits == std::string::npos ? field : field.substr(digits))) {
            shape.push_back(*extent);
        }
    }
    return shape;
}

template <typename T>
std::vector<float> convert(std::string_view bytes, std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes.data(), count * sizeof(T));
    return {values.begin(), values.end()};
}

}  // namespace

NpyArray read_npy(const std::filesystem::path& path) {
    const std::optional<std::string> content = files::read(path);
    if (!content) {
        throw bad_input("cannot read {}: {}", path.string(), std::strerror(errno));
    }
    // Magic, two bytes of version, the header's length in two bytes (version 1) or four.
    const std::string_view bytes = *content;
    const std::string_view magic("\x93NUMPY", 6);
    if (bytes.size() < 12 || !bytes.starts_with(magic)) {
        throw bad_input("{} is not a NumPy file (.npy)", path.string());
    }
    const auto byte = [&](std::size_t i) {
        return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
    };
    const bool long_header = bytes[6] != 1;
    const std::size_t begin = long_header ? 12 : 10;
    const std::size_t length = byte(8) | byte(9) << 8 | (long_header ? byte(10) << 16 | byte(11) << 24 : 0);
    const std::string_view header = bytes.substr(begin, length);
    const std::string_view type = entry(header, "'descr'");
    const std::string_view tuple = entry(header, "'shape'");
    const bool single = type.starts_with("<f4");
    if ((!single && !type.starts_with("<f8")) || !entry(header, "'fortran_order'").starts_with("False") ||
        !tuple.starts_with('(')) {
        throw bad_input("{}: only little-endian float32 or float64 arrays in C order are read",
                        path.string());
    }
    NpyArray array;
    array.shape = parse_shape(tuple);
    const auto count = static_cast<std::size_t>(
        std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>()));
    const std::string_view data = bytes.substr(std::min(bytes.size(), begin + length));
    if (data.size() / (single ? sizeof(float) : sizeof(double)) < count) {
        throw bad_input("{} is cut off: its header says {} values", path.string(), count);
    }
    array.values = single ? convert<float>(data, count) : convert<double>(data, count);
    return array;
}

}  // namespace joulemark::train
