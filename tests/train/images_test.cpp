// SPDX-License-Identifier: Apache-2.0
#include "data/images.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/files.h"
#include "data/make_images.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

class ImageFolderTest : public testing::Test {
  protected:
    ImageFolderTest() {
        make_images(
            {.folder = folder_.path(), .classes = 3, .per_class = 5, .validation_per_class = 2, .size = 48});
    }
    StoredImages open(Split split, std::uint64_t seed = 1) const {
        return {open_images_at(folder_.path() / (split == Split::training ? "train" : "val")), 32, seed,
                split};
    }
    TemporaryFolder folder_;
};

torch::Tensor image(const Dataset& data, std::uint32_t index, std::uint64_t epoch) {
    auto sample = data.load(index, epoch);
    EXPECT_TRUE(sample) << sample.failure().reason;
    return sample->front();
}

TEST_F(ImageFolderTest, ASampleDependsOnSeedEpochAndIndexOnly) {
    const auto data = open(Split::training);
    EXPECT_TRUE(image(data, 3, 0).equal(image(open(Split::training), 3, 0)));
    EXPECT_FALSE(image(data, 3, 0).equal(image(data, 3, 1)));
    EXPECT_FALSE(image(data, 3, 0).equal(image(open(Split::training, 2), 3, 0)));
    const auto validation = open(Split::validation);
    EXPECT_TRUE(image(validation, 1, 0).equal(image(validation, 1, 9)));
}

TEST_F(ImageFolderTest, CollatesToNchwStoredAsNhwc) {
    const auto data = open(Split::training);
    std::vector<Sample> samples;
    for (const std::uint32_t index : {0U, 6U, 14U}) {
        samples.push_back(*data.load(index, 0));
    }
    const Batch batch = data.collate(samples, false);
    EXPECT_EQ(batch.samples, 3);
    EXPECT_EQ(batch.inputs[0].sizes(), (std::vector<std::int64_t>{3, 3, 32, 32}));
    EXPECT_TRUE(batch.inputs[0].is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(batch.inputs[0][1].permute({1, 2, 0}).equal(samples[1][0]));
    EXPECT_TRUE(batch.target.equal(torch::tensor({0, 1, 2}, torch::kInt64)));
}

TEST_F(ImageFolderTest, NamesADamagedFile) {
    const auto path = folder_.path() / "train/class000/00000.jpg";
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const auto sample = open(Split::training).load(0, 0);
    ASSERT_FALSE(sample);
    EXPECT_THAT(sample.failure().reason, testing::HasSubstr(path.string()));
    std::filesystem::remove(path);
    std::ofstream(path) << "";
    EXPECT_FALSE(open(Split::training).load(0, 0));
}

TEST(MakeImages, WritesTheSameFilesForTheSameSeed) {
    const TemporaryFolder first;
    const TemporaryFolder second;
    for (const auto* folder : {&first, &second}) {
        make_images(
            {.folder = folder->path(), .classes = 2, .per_class = 2, .validation_per_class = 1, .size = 16});
    }
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(first.path())) {
        if (entry.is_regular_file()) {
            ++files;
            const auto other = second.path() / std::filesystem::relative(entry.path(), first.path());
            EXPECT_EQ(files::read(entry.path()), files::read(other));
        }
    }
    EXPECT_EQ(files, 6U);
}

TEST(SyntheticImages, AreDeterministicBalancedAndDifferBetweenSplits) {
    const SyntheticImages training(100, 10, 20, 1, Split::training);
    const SyntheticImages validation(100, 10, 20, 1, Split::validation);
    EXPECT_TRUE(image(training, 7, 0).equal(image(training, 7, 5)));
    EXPECT_FALSE(image(training, 7, 0).equal(image(validation, 7, 0)));
    EXPECT_FALSE(image(training, 7, 0).equal(image(training, 17, 0)));  // same class
    EXPECT_FALSE(image(training, 7, 0).equal(image(SyntheticImages(100, 10, 20, 2, Split::training), 7, 0)));
    EXPECT_EQ((*training.load(17, 0))[1].item<std::int64_t>(), 7);
    EXPECT_EQ(image(training, 0, 0).sizes(), (std::vector<std::int64_t>{20, 20, 3}));
}

}  // namespace
}  // namespace joulemark::train
