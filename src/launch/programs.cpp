// SPDX-License-Identifier: Apache-2.0
#include "launch/programs.h"

#include <cstdlib>
#include <sstream>
#include <system_error>

#include <unistd.h>

#include "core/error.h"

namespace joulemark::launch {
namespace {

bool is_executable(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::filesystem::path own_program() {
    std::error_code error;
    auto path = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) {
        throw environment_error("cannot find this program's own file: {}; is /proc mounted?",
                                error.message());
    }
    return path;
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return is_executable(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
    }
    if (auto beside = own_program().parent_path() / name; is_executable(beside)) {
        return beside;
    }
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (auto candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
            is_executable(candidate)) {
            return candidate;
        }
    }
    return std::nullopt;
}

std::optional<std::filesystem::path> simulated_nvml() {
    const std::filesystem::path prefix = own_program().parent_path().parent_path();
    for (const char* folder : {"sim", "lib/joulemark/sim"}) {
        std::error_code error;
        if (auto library = prefix / folder / "libnvidia-ml.so.1"; std::filesystem::exists(library, error)) {
            return library;
        }
    }
    return std::nullopt;
}

}  // namespace joulemark::launch
