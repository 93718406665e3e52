// SPDX-License-Identifier: Apache-2.0
#include "meter/append_file.h"

#include <cerrno>
#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/error.h"
#include "core/files.h"
#include "fakes.h"

namespace joulemark::meter {
namespace {

/// While it lives, no file of this process can grow beyond a size: as on a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        signal(SIGXFSZ, handler_);
    }

  private:
    rlimit before_{};
    sighandler_t handler_;
};

TEST(AppendFile, WritesOnFlush) {
    const TemporaryFolder folder;
    AppendFile file(folder / "a.csv");
    file.append("one\n");
    EXPECT_EQ(files::read(folder / "a.csv"), "");
    EXPECT_EQ(file.unwritten(), 1U);
    file.flush();
    EXPECT_EQ(files::read(folder / "a.csv"), "one\n");
    EXPECT_EQ(file.unwritten(), 0U);
}

TEST(AppendFile, CompletesALineTheDiskTookHalfOf) {
    const TemporaryFolder folder;
    AppendFile file(folder / "a.csv");
    {
        const FileSizeLimit limit(10);
        file.append("first,1\n");
        file.append("second,2\n");
        file.flush();
        EXPECT_EQ(file.error(), EFBIG);
        EXPECT_EQ(files::read(folder / "a.csv"), "first,1\nse");
    }
    file.append("third,3\n");
    file.flush();
    EXPECT_EQ(file.error(), 0);
    EXPECT_EQ(files::read(folder / "a.csv"), "first,1\nsecond,2\nthird,3\n");
}

TEST(AppendFile, CountsWhatItCannotKeep) {
    const TemporaryFolder folder;
    AppendFile file(folder / "a.csv");
    const std::string line = std::string(1023, 'x') + '\n';
    {
        const FileSizeLimit limit(0);
        for (int i = 0; i < 3000; ++i) {
            file.append(line);
        }
        EXPECT_EQ(file.unwritten(), 3000U);
    }
    file.flush();
    EXPECT_EQ(files::read(folder / "a.csv")->size() / line.size() + file.unwritten(), 3000U);
    EXPECT_GT(file.unwritten(), 0U);
    EXPECT_LT(file.unwritten(), 3000U);
}

TEST(AppendFile, DoesNotOverwriteWhatIsThere) {
    const TemporaryFolder folder;
    files::write_atomically(folder / "a.csv", "precious\n");
    EXPECT_THROW(AppendFile(folder / "a.csv"), Error);
    EXPECT_EQ(files::read(folder / "a.csv"), "precious\n");
}

}  // namespace
}  // namespace joulemark::meter
