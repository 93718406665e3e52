// SPDX-License-Identifier: Apache-2.0
#include "data/storms.h"

#include <array>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <hdf5.h>

#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::HasSubstr;

/// A data set of bytes that count up, modulo 251.
void write_hdf5(const std::filesystem::path& path, const std::string& name,
                const std::vector<hsize_t>& shape) {
    std::filesystem::create_directories(path.parent_path());
    std::size_t size = 1;
    for (const hsize_t extent : shape) {
        size *= extent;
    }
    std::vector<std::uint8_t> values(size);
    for (std::size_t i = 0; i < size; ++i) {
        values[i] = static_cast<std::uint8_t>(i % 251);
    }
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t data =
        H5Dcreate2(file, name.c_str(), H5T_NATIVE_UINT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
}

const StormFrames frames = {.inputs = 3, .outputs = 2};

class SevirTest : public testing::Test {
  protected:
    std::string error_of() const {
        try {
            SevirStorms storms(folder_.path(), frames);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            return error.what();
        }
        return "";
    }
    TemporaryFolder folder_;
    std::filesystem::path file_ = folder_.path() / "2019" / "a.h5";
};

TEST_F(SevirTest, CutsEventsIntoWindows) {
    write_hdf5(file_, "vil", {2, 4, 6, 10});
    write_hdf5(folder_.path() / "2020" / "b.h5", "vil", {1, 4, 6, 7});
    const SevirStorms storms(folder_.path(), frames);
    // 10 frames: windows of 5 at 0, 2, 4; 7 frames: at 0, 2.
    ASSERT_EQ(storms.size(), 2U * 3 + 2);
    EXPECT_EQ(storms.height(), 4);
    EXPECT_EQ(storms.width(), 6);
    const torch::Tensor sample = (*storms.load(4, 0))[0];  // event 1, frame 2
    EXPECT_EQ(sample.sizes(), (std::vector<std::int64_t>{4, 6, 5}));
    EXPECT_EQ(sample[3][5][4].item<int>(), (((1 * 4 + 3) * 6 + 5) * 10 + 2 + 4) % 251);
    const Batch batch = storms.collate({*storms.load(0, 0), *storms.load(4, 0)}, false);
    EXPECT_EQ(batch.samples, 2);
    EXPECT_TRUE(batch.inputs[0][1].equal(sample));
}

TEST_F(SevirTest, NamesWhatIsWrong) {
    EXPECT_THAT(error_of(), HasSubstr("no HDF5 file"));
    write_hdf5(file_, "vis", {1, 4, 4, 10});
    EXPECT_THAT(error_of(), testing::AllOf(HasSubstr("a.h5 has no data set 'vil'"), HasSubstr("vis")));
    write_hdf5(file_, "vil", {4, 4, 10});
    EXPECT_THAT(error_of(),
                HasSubstr("the shape [4, 4, 10], but image sequences are [event, height, width, frame]"));
    write_hdf5(file_, "vil", {1, 4, 4, 4});
    EXPECT_THAT(error_of(), HasSubstr("has 4 frames an event, fewer than the 3 seen and 2 forecast"));
    write_hdf5(file_, "vil", {1, 4, 4, 5});
    write_hdf5(folder_.path() / "2020" / "b.h5", "vil", {1, 4, 6, 5});
    EXPECT_THAT(error_of(), HasSubstr("b.h5: 'vil' has images of 4 x 6, but those of"));
    std::filesystem::remove(folder_.path() / "2020" / "b.h5");
    std::ofstream(file_) << "no HDF5";
    EXPECT_THAT(error_of(), testing::AllOf(HasSubstr("no event"), HasSubstr("a.h5")));
    write_hdf5(file_, "vil", {0, 4, 4, 10});
    EXPECT_THAT(error_of(), testing::AllOf(HasSubstr("no event"), HasSubstr("a.h5")));
}

TEST_F(SevirTest, PassesOverAFileThatIsCut) {
    write_hdf5(file_, "vil", {1, 4, 6, 5});
    const auto cut = folder_.path() / "2020" / "b.h5";
    write_hdf5(cut, "vil", {1, 4, 6, 5});
    const std::string whole = SevirStorms(folder_.path(), frames).digest();
    std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 100);
    const SevirStorms storms(folder_.path(), frames);
    EXPECT_EQ(storms.size(), 1U);
    EXPECT_THAT(storms.problems(), testing::ElementsAre(HasSubstr("b.h5 cannot be opened")));
    EXPECT_NE(storms.digest(), whole);
}

TEST(SyntheticStorms, DriftAndDependOnSeedAndIndexOnly) {
    const SyntheticStorms storms(10, 32, frames, 1, Split::training);
    const torch::Tensor sample = (*storms.load(3, 0))[0];
    EXPECT_EQ(sample.sizes(), (std::vector<std::int64_t>{32, 32, 5}));
    EXPECT_TRUE(sample.equal((*SyntheticStorms(10, 32, frames, 1, Split::training).load(3, 7))[0]));
    EXPECT_FALSE(sample.equal((*storms.load(4, 0))[0]));
    EXPECT_FALSE(sample.equal((*SyntheticStorms(10, 32, frames, 1, Split::validation).load(3, 0))[0]));
    // As in SEVIR most pixels are dark, some bright.
    double bright = 0;
    for (std::uint32_t i = 0; i < 10; ++i) {
        bright += (*storms.load(i, 0))[0].gt(74).to(torch::kFloat64).mean().item<double>() / 10;
    }
    EXPECT_GT(bright, 0.02);
    EXPECT_LT(bright, 0.5);
}

}  // namespace
}  // namespace joulemark::train
