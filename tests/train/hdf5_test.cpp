// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5.h"

#include <fstream>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <hdf5.h>

#include "temporary_folder.h"

namespace joulemark::train {
namespace {

constexpr std::array<hsize_t, 4> file_shape = {3, 4, 5, 6};
constexpr std::int64_t file_values = 3 * 4 * 5 * 6;

/// Element i of the data set is i.
void write_file(const std::string& path, const char* name, hid_t type, bool chunked) {
    std::vector<float> content(file_values);
    std::iota(content.begin(), content.end(), 0.0F);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(4, file_shape.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked) {
        constexpr std::array<hsize_t, 4> chunk = {1, 2, 5, 6};
        H5Pset_chunk(creation, 4, chunk.data());
        H5Pset_deflate(creation, 4);
    }
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, content.data());
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
    H5Fclose(file);
}

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "nothing was thrown";
}

class Hdf5Layouts : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(Hdf5Layouts, EveryBlockIsTheArraysBlock) {
    const auto [chunked, wide] = GetParam();
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "a.h5").string();
    write_file(path, "fields", wide ? H5T_IEEE_F64BE : H5T_IEEE_F32LE, chunked);
    const Hdf5Array array(path, "fields");
    EXPECT_EQ(array.lock_free(), !chunked && !wide);
    EXPECT_THAT(array.shape(), testing::ElementsAre(3, 4, 5, 6));
    const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> blocks = {
        {{0, 0, 0, 0}, {3, 4, 5, 6}}, {{1, 0, 0, 0}, {2, 4, 4, 6}}, {{2, 1, 0, 0}, {1, 2, 5, 6}},
        {{0, 3, 2, 1}, {3, 1, 2, 4}}, {{2, 3, 4, 5}, {1, 1, 1, 1}}, {{0, 1, 1, 0}, {2, 3, 2, 6}}};
    for (const auto& [begin, count] : blocks) {
        std::vector<float> expected;
        for (std::int64_t a = begin[0]; a < begin[0] + count[0]; ++a) {
            for (std::int64_t b = begin[1]; b < begin[1] + count[1]; ++b) {
                for (std::int64_t c = begin[2]; c < begin[2] + count[2]; ++c) {
                    for (std::int64_t d = begin[3]; d < begin[3] + count[3]; ++d) {
                        expected.push_back(static_cast<float>(((a * 4 + b) * 5 + c) * 6 + d));
                    }
                }
            }
        }
        std::vector<float> read(expected.size());
        ASSERT_FALSE(array.read(begin, count, read.data()).has_value());
        EXPECT_EQ(read, expected);
    }
}
INSTANTIATE_TEST_SUITE_P(All, Hdf5Layouts,
                         testing::Values(std::pair{false, false}, std::pair{true, false},
                                         std::pair{false, true}));

TEST(Hdf5, IsReadByManyThreadsAtOnce) {
    const TemporaryFolder folder;
    for (const bool chunked : {false, true}) {
        const std::string path = (folder.path() / "a.h5").string();
        write_file(path, "fields", H5T_IEEE_F32LE, chunked);
        const Hdf5Array array(path, "fields");
        std::atomic<int> wrong = 0;
        {
            std::vector<std::jthread> threads;
            for (std::int64_t thread = 0; thread < 4; ++thread) {
                threads.emplace_back([&, thread] {
                    for (std::int64_t i = 0; i < 200; ++i) {
                        const std::array<std::int64_t, 4> begin = {i % 3, thread, 0, 0};
                        const std::array<std::int64_t, 4> count = {1, 1, 5, 6};
                        std::vector<float> read(30);
                        const bool failed = array.read(begin, count, read.data()).has_value();
                        wrong +=
                            failed || read[7] != static_cast<float>((i % 3 * 4 + thread) * 30 + 7) ? 1 : 0;
                    }
                });
            }
        }
        EXPECT_EQ(wrong, 0) << "chunked " << chunked;
    }
}

TEST(Hdf5, SaysWhatAFileLacks) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "a.h5").string();
    write_file(path, "t2m", H5T_IEEE_F32LE, false);
    EXPECT_EQ(message_of([&] { Hdf5Array(path, "fields"); }),
              path + " has no data set 'fields': it holds t2m");
    const std::string other = (folder.path() / "b.h5").string();
    std::ofstream(other) << "no such format";
    EXPECT_THAT(message_of([&] { Hdf5Array(other, "fields"); }),
                testing::HasSubstr("b.h5 cannot be opened as an HDF5"));
    EXPECT_THAT(message_of([&] { Hdf5Array(folder.path() / "c.h5", "fields"); }),
                testing::HasSubstr("no file"));
}

TEST(Hdf5, NamesAFileThatWasCutWhileOpen) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "a.h5").string();
    write_file(path, "fields", H5T_IEEE_F32LE, false);
    const Hdf5Array array(path, "fields");
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
    std::vector<float> read(file_values);
    const auto failure = array.read(std::vector<std::int64_t>(4, 0), array.shape(), read.data());
    ASSERT_TRUE(failure.has_value());
    EXPECT_THAT(failure->reason, testing::AllOf(testing::HasSubstr("a.h5"), testing::HasSubstr("cut off")));
}

}  // namespace
}  // namespace joulemark::train
