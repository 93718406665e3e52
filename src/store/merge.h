// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/database.h"

namespace joulemark::store {

inline constexpr std::string_view database_file = "joulemark.sqlite";

struct MergeOptions {
    /// Called after every host that had to be read.
    std::function<void(std::size_t done, std::size_t total)> progress;
    /// Merge on a copy in node-local storage and rename it into place, as is done by itself where the file
    /// system's locks do not work.
    bool avoid_locks = false;
};

/// An up-to-date database, and what the user should know about it.
struct Merged {
    std::shared_ptr<void> working_folder;  ///< holds a temporary database; outlives the connection
    Database database;
    std::vector<std::string> notes;
    std::size_t hosts_read = 0, hosts_unchanged = 0, hosts_removed = 0;
};

/// Brings DIR/joulemark.sqlite up to date with DIR/runs and opens it. Only hosts whose files changed in size
/// or time are read. Processes may merge at once, and one may be killed at any instant: work is committed in
/// short transactions, each of which leaves a true picture of the hosts read so far.
///
/// Where the database cannot be used in place it is merged in node-local storage and renamed into DIR: file
/// systems without locks, damage, another version of the schema. Where DIR cannot be written at all the merge
/// is temporary, and a note says so. Run files are never written or removed.
///
/// Throws bad_input when `dir` is no results directory, environment_error when even a temporary database
/// cannot be made.
Merged merge(const std::filesystem::path& dir, const MergeOptions& options = {});

/// The folder of one host, found in DIR/runs; in the order of run, then host.
struct HostFolder {
    std::string run, host;
    std::filesystem::path path;
    std::string fingerprint;  ///< size and time of each of its files
};
/// `empty_runs`, if given, gets the runs of which nothing is there.
std::vector<HostFolder> host_folders(const std::filesystem::path& dir,
                                     std::vector<std::string>* empty_runs = nullptr);

}  // namespace joulemark::store
