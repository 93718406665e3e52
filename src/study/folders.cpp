// SPDX-License-Identifier: Apache-2.0
#include "study/folders.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::study {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

files::Descriptor lock_directory(const fs::path& directory, std::string& problem) {
    const fs::path path = directory / "study.lock";
    files::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file) {
        throw environment_error("cannot write {}: {}", path.string(), std::strerror(errno));
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            throw environment_error(
                "another sweep is at work in {}: wait for it, or use another directory with -o",
                directory.string());
        }
        problem = fmt::format("{} cannot be locked ({}): make sure that no other sweep uses it",
                              directory.string(), std::strerror(errno));
    }
    return file;
}

namespace {

constexpr std::string_view folder_prefix = "joulemark-sim-";
/// A folder so young may be one whose maker is about to lock it.
constexpr auto youngest_stale = 1min;

files::Descriptor lock_folder(const fs::path& folder) {
    files::Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (file && flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        file.reset();
    }
    return file;
}

void remove_stale_folders(const fs::path& parent) {
    const std::size_t length = folder_prefix.size() + 6;  // as mkdtemp names them
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
        const std::string name = entry.path().filename().string();
        struct stat status {};
        if (!name.starts_with(folder_prefix) || name.size() != length ||
            lstat(entry.path().c_str(), &status) != 0 || status.st_uid != geteuid()) {
            continue;
        }
        const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime);
        if (age > youngest_stale && lock_folder(entry.path())) {
            fs::remove_all(entry.path(), error);
        }
    }
}

}  // namespace

fs::path TemporaryFolder::default_parent() {
    std::error_code error;
    return fs::is_directory("/dev/shm", error) ? "/dev/shm" : fs::temp_directory_path();
}

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
    remove_stale_folders(parent);
    std::string name = (parent / fmt::format("{}XXXXXX", folder_prefix)).string();
    if (mkdtemp(name.data()) == nullptr) {
        throw environment_error("cannot make a folder in {}: {}", parent.string(), std::strerror(errno));
    }
    path_ = name;
    lock_ = lock_folder(path_);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
}

}  // namespace joulemark::study
