// SPDX-License-Identifier: Apache-2.0
#include "meter/election.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "meter/marker_socket.h"

namespace joulemark::meter {
namespace {

using namespace std::chrono_literals;

files::Descriptor open_shared(const std::string& path, int flags) {
    files::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) {
        throw environment_error("cannot open {}: {}", path, std::strerror(errno));
    }
    if (status.st_uid != geteuid()) {
        throw environment_error("{} belongs to another user: remove it", path);
    }
    return file;
}

std::string content(const files::Descriptor& file) {
    std::array<char, 256> text;
    const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "";
}

/// In one piece, whoever else appends.
bool append_line(const files::Descriptor& file, const std::string& line) {
    const std::string text = line + '\n';
    return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Whether an open file is still the one at `path`.
bool is_at(const files::Descriptor& file, const std::string& path) {
    struct stat opened {};
    struct stat there {};
    return fstat(file.get(), &opened) == 0 && stat(path.c_str(), &there) == 0 &&
           opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

}  // namespace

std::variant<Election::Sampler, Election::Member> Election::hold(const std::filesystem::path& folder,
                                                                 const std::string& key, int rank) {
    const std::string base = folder / ("joulemark-" + std::to_string(geteuid()) + "-" + key);
    const std::string lock_path = base + ".lock";
    const std::string ranks_path = base + ".ranks";
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (true) {
        files::Descriptor lock = open_shared(lock_path, 0);
        files::Descriptor ranks = open_shared(ranks_path, O_APPEND);
        // The sampler before this one may have removed the files between opening and locking them.
        if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
            if (!is_at(lock, lock_path) || !is_at(ranks, ranks_path)) {
                continue;
            }
            if (ftruncate(lock.get(), 0) != 0 || ftruncate(ranks.get(), 0) != 0) {
                throw environment_error("cannot write {}: {}", lock_path, std::strerror(errno));
            }
            return Sampler(std::move(lock), std::move(ranks), {lock_path, ranks_path});
        }
        // Locked before looking: either the sampler sees this rank, or this rank sees that the sampler is
        // gone.
        flock(ranks.get(), LOCK_SH);
        if (std::string path = content(lock); listens(path) && is_at(ranks, ranks_path)) {
            if (!append_line(ranks, std::to_string(rank))) {
                throw environment_error("cannot write {}: {}", ranks_path, std::strerror(errno));
            }
            return Member{std::move(path), std::move(ranks), rank};
        }
        if (std::chrono::steady_clock::now() > until) {
            throw environment_error("another process holds {} but does not meter", lock_path);
        }
        std::this_thread::sleep_for(10ms);
    }
}

void Election::Sampler::announce(const std::string& socket_path) {
    if (pwrite(lock_.get(), socket_path.data(), socket_path.size(), 0) !=
        static_cast<ssize_t>(socket_path.size())) {
        throw environment_error("cannot tell the other ranks of this node about the sampler: {}",
                                std::strerror(errno));
    }
}

bool Election::Sampler::others_run() const {
    if (flock(ranks_.get(), LOCK_EX | LOCK_NB) != 0) {
        return true;
    }
    flock(ranks_.get(), LOCK_UN);
    return false;
}

std::vector<Election::Sampler::End> Election::Sampler::ends() const {
    std::map<int, End> by_rank;
    std::istringstream lines(files::read(paths_[1]).value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        End end;
        words >> end.rank;
        if (int exit_status = 0; words >> exit_status) {
            end.exit_status = exit_status;
        }
        by_rank[end.rank] = end;
    }
    std::vector<End> all;
    for (const auto& [rank, end] : by_rank) {
        all.push_back(end);
    }
    return all;
}

void Election::Member::ended(int exit_status) const {
    append_line(ranks, std::to_string(rank) + ' ' + std::to_string(exit_status));
}

Election::Sampler::~Sampler() {
    if (lock_) {
        for (const std::string& path : paths_) {
            unlink(path.c_str());
        }
    }
}

}  // namespace joulemark::meter
