// SPDX-License-Identifier: Apache-2.0
#include "data/tar_images.h"

#include <cstdlib>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "core/files.h"
#include "temporary_folder.h"

namespace joulemark::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
namespace fs = std::filesystem;

/// Files in a folder, packed by the system's tar.
class TarImagesTest : public testing::Test {
  protected:
    void write(const std::string& name, const std::string& content) {
        fs::create_directories((source_ / name).parent_path());
        std::ofstream(source_ / name) << content;
    }
    /// Packs what was written into shards/NAME and begins anew.
    fs::path pack(const std::string& name, const std::string& format = "--format=ustar") {
        const fs::path shard = shards_ / name;
        fs::create_directories(shards_);
        const std::string command =
            "tar " + format + " --sort=name -C '" + source_.string() + "' -cf '" + shard.string() + "' .";
        EXPECT_EQ(std::system(command.c_str()), 0);
        fs::remove_all(source_);
        return shard;
    }
    std::string error_of(const std::vector<std::string>& classes = {}) const {
        try {
            TarImages images(tar_shards(shards_), classes);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            return error.what();
        }
        return "";
    }
    TemporaryFolder folder_;
    fs::path source_ = folder_.path() / "source";
    fs::path shards_ = folder_.path() / "shards";
};

TEST_F(TarImagesTest, ClassFoldersAreNumberedOverAllShards) {
    write("dog/a.jpg", "first dog");
    write("dog/a.v2.JPEG", std::string(1000, 'x'));
    write("readme.txt", "no image");
    pack("1.tar");
    write("cat/c.jpg", "cat");
    write("dog/b.jpg", "second dog");
    pack("2.tar");
    const TarImages images(tar_shards(shards_));
    EXPECT_THAT(images.classes(), ElementsAre("cat", "dog"));
    ASSERT_EQ(images.size(), 4U);
    std::multiset<std::pair<std::int64_t, std::string>> seen;
    for (std::uint32_t i = 0; i < images.size(); ++i) {
        seen.emplace(images.label(i), images.read(i)->substr(0, 10));
    }
    EXPECT_THAT(seen, ElementsAre(Pair(0, "cat"), Pair(1, "first dog"), Pair(1, "second dog"),
                                  Pair(1, "xxxxxxxxxx")));
    EXPECT_TRUE(images.problems().empty());
}

TEST_F(TarImagesTest, PairsTakeTheirLabelFromTheNumber) {
    write("000.jpg", "zero");
    write("000.cls", "3\n");
    write("001.jpg", "one");
    write("001.cls", "007");
    write("001.json", "{}");
    pack("a.tar");
    const TarImages images(tar_shards(shards_));
    EXPECT_EQ(images.classes().size(), 8U);
    ASSERT_EQ(images.size(), 2U);
    EXPECT_EQ(images.label(0), 3);
    EXPECT_EQ(*images.read(0), "zero");
    EXPECT_EQ(images.label(1), 7);
}

TEST_F(TarImagesTest, ReadsLongNamesOfBothFormats) {
    const std::string deep(90, 'd');
    const std::string name = deep + "/" + deep + "/dog/" + std::string(150, 'n') + ".jpg";
    for (const std::string format : {"--format=gnu", "--format=pax"}) {
        write(name, format);
        write("cat/x.jpg", "cat");
        const fs::path shard = pack("long.tar", format);
        const TarImages images({shard});
        EXPECT_THAT(images.classes(), ElementsAre("cat", "dog")) << format;
        EXPECT_EQ(*images.read(1), format);
    }
}

TEST_F(TarImagesTest, ATruncatedShardIsNamedAndWhatIsWholeIsUsed) {
    write("cat/a.jpg", std::string(3000, 'a'));
    write("dog/b.jpg", std::string(3000, 'b'));
    const fs::path good = pack("1.tar");
    write("cat/c.jpg", std::string(3000, 'c'));
    write("dog/d.jpg", std::string(3000, 'd'));
    const fs::path cut = pack("2.tar");
    const auto second = TarImages({cut}).where(1);
    const auto offset = std::stoull(second.substr(second.rfind(' ')));
    fs::resize_file(cut, offset + 100);  // inside the last image
    const TarImages images(tar_shards(shards_));
    EXPECT_EQ(images.size(), 3U);
    EXPECT_THAT(
        images.problems(),
        ElementsAre(cut.string() + " ends in the middle of ./dog/d.jpg; images used of it: 1"));
    fs::resize_file(cut, offset - 100);  // inside its header
    EXPECT_THAT(TarImages(tar_shards(shards_)).problems(),
                ElementsAre(HasSubstr("ends in the middle of a header")));
    fs::resize_file(good, 700);
    EXPECT_THAT(error_of(), HasSubstr("one class only"));
    // One that becomes shorter later is met when it is read.
    fs::resize_file(good, 100000);
    write("cat/a.jpg", std::string(3000, 'a'));
    write("dog/b.jpg", std::string(3000, 'b'));
    const TarImages later({pack("3.tar")});
    fs::resize_file(shards_ / "3.tar", 2000);
    ASSERT_FALSE(later.read(1));
    EXPECT_THAT(later.read(1).failure().reason, HasSubstr("3.tar at byte"));
}

TEST_F(TarImagesTest, NamesWhatIsWrong) {
    fs::create_directories(shards_);
    std::ofstream(shards_ / "a.tar") << std::string(2048, 'x');
    EXPECT_THAT(error_of(), HasSubstr("a.tar is not a tar archive"));
    write("cat/a.jpg", "x");
    write("lonely.jpg", "x");
    pack("a.tar");
    EXPECT_THAT(error_of(), HasSubstr("the image ./lonely is in no class folder and has no ./lonely.cls"));
    write("cat/a.jpg", "x");
    write("b.jpg", "x");
    write("b.cls", "1");
    pack("a.tar");
    EXPECT_THAT(error_of(), HasSubstr("mix class folders with .cls files"));
    write("b.jpg", "x");
    write("b.cls", "one");
    pack("a.tar");
    EXPECT_THAT(error_of(), HasSubstr("holds 'one', which is no class number"));
    write("cat/a.jpg", "x");
    write("cow/a.jpg", "x");
    pack("a.tar");
    EXPECT_THAT(error_of({"cat", "dog"}), HasSubstr("has the class 'cow'"));
}

}  // namespace
}  // namespace joulemark::train
