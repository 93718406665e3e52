// SPDX-License-Identifier: Apache-2.0
#include "data/npy.h"

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

/// As NumPy writes it: version 1, header padded to a multiple of 64 bytes.
std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header += std::string(64 - (10 + header.size() + 1) % 64, ' ') + "\n";
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xFF);
    text += static_cast<char>(header.size() >> 8);
    return text + header + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Npy : public testing::Test {
  protected:
    NpyArray read(const std::string& content) {
        std::ofstream(path_, std::ios::binary) << content;
        return read_npy(path_);
    }
    std::string refusal(const std::string& content) {
        try {
            read(content);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

  private:
    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_.path() / "means.npy";
};

TEST_F(Npy, ReadsBothPrecisions) {
    const NpyArray single = read(npy("<f4", "(1, 3, 1, 1)", bytes_of<float>({1.5F, -2, 4})));
    EXPECT_THAT(single.shape, testing::ElementsAre(1, 3, 1, 1));
    EXPECT_THAT(single.values, testing::ElementsAre(1.5F, -2, 4));
    EXPECT_THAT(read(npy("<f8", "(2,)", bytes_of<double>({0.5, 7}))).values, testing::ElementsAre(0.5F, 7));
}

TEST_F(Npy, RefusesWhatItCannotRead) {
    EXPECT_THAT(refusal("PK\x03\x04 something else entirely"), testing::HasSubstr("not a NumPy file"));
    EXPECT_THAT(refusal(npy("<i8", "(1,)", "12345678")), testing::HasSubstr("float32 or float64"));
    EXPECT_THAT(refusal(npy("<f4", "(4, 9)", "1234")), testing::HasSubstr("cut off"));
    EXPECT_THROW(read_npy("/nonexistent/x.npy"), Error);
}

}  // namespace
}  // namespace joulemark::train
