// SPDX-License-Identifier: Apache-2.0
#include "data/image_files.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void touch(const std::filesystem::path& path) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
}

std::string error_of(const std::filesystem::path& folder, const std::vector<std::string>& classes = {}) {
    try {
        ImageFiles files(folder, classes);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_input);
        return error.what();
    }
    return "";
}

TEST(ImageFiles, SortsClassesAndFilesAndPassesOverTheRest) {
    const TemporaryFolder folder;
    touch(folder.path() / "dog/b.JPEG");
    touch(folder.path() / "dog/a.jpg");
    touch(folder.path() / "dog/readme.txt");
    touch(folder.path() / "dog/.hidden.jpg");
    touch(folder.path() / "cat/c.jpeg");
    touch(folder.path() / "labels.csv");
    touch(folder.path() / ".cache/x.jpg");
    const ImageFiles files(folder.path());
    EXPECT_THAT(files.classes(), ElementsAre("cat", "dog"));
    ASSERT_EQ(files.size(), 3U);
    EXPECT_EQ(files.path(0), folder.path() / "cat/c.jpeg");
    EXPECT_EQ(files.path(1), folder.path() / "dog/a.jpg");
    EXPECT_EQ(files.path(2), folder.path() / "dog/b.JPEG");
    EXPECT_EQ(files.label(0), 0);
    EXPECT_EQ(files.label(2), 1);
}

TEST(ImageFiles, NumbersValidationClassesAsTheTrainingFolderDoes) {
    const TemporaryFolder folder;
    touch(folder.path() / "bee/a.jpg");
    touch(folder.path() / "cat/a.jpg");
    const ImageFiles files(folder.path(), {"ant", "bee", "cat"});
    EXPECT_EQ(files.label(0), 1);
    EXPECT_EQ(files.label(1), 2);
    EXPECT_THAT(error_of(folder.path(), {"ant", "cat"}), HasSubstr("'bee'"));
}

TEST(ImageFiles, NamesWhatIsWrong) {
    const TemporaryFolder folder;
    EXPECT_THAT(error_of(folder.path() / "none"), HasSubstr("no image folder"));
    EXPECT_THAT(error_of(folder.path()), HasSubstr("0 class folders"));
    touch(folder.path() / "cat/a.jpg");
    EXPECT_THAT(error_of(folder.path()), HasSubstr("1 class folder:"));
    touch(folder.path() / "dog/a.txt");
    EXPECT_THAT(error_of(folder.path()), HasSubstr("dog has no JPEG"));
}

TEST(FindImageFolders, UsesTrainAndValWherePresent) {
    const TemporaryFolder folder;
    EXPECT_EQ(find_image_folders(folder.path()).train, folder.path());
    EXPECT_TRUE(find_image_folders(folder.path()).validation.empty());
    std::filesystem::create_directories(folder.path() / "train");
    EXPECT_EQ(find_image_folders(folder.path()).train, folder.path() / "train");
    EXPECT_TRUE(find_image_folders(folder.path()).validation.empty());
    std::filesystem::create_directories(folder.path() / "val");
    EXPECT_EQ(find_image_folders(folder.path()).validation, folder.path() / "val");
}

}  // namespace
}  // namespace joulemark::train
