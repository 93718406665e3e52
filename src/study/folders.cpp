// SPDX-License-Identifier: Apache-2.0
#include "study/folders.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::study {

namespace fs = std::filesystem;

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

TemporaryFolder::TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::is_directory("/dev/shm", error) ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (parent / "joulemark-sim-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw environment_error("cannot make a folder in {}: {}", parent.string(), std::strerror(errno));
    }
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
}

}  // namespace joulemark::study
