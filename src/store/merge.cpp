// SPDX-License-Identifier: Apache-2.0
#include "store/merge.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/run_format.h"
#include "store/host_digest.h"
#include "store/host_writer.h"
#include "store/schema.h"

namespace joulemark::store {
namespace {

namespace fs = std::filesystem;

/// Hosts read ahead at once: a login node has many cores and other users.
constexpr unsigned most_readers = 8;
/// How long one transaction goes on before others get their turn.
constexpr std::chrono::seconds turn{1};

std::string fingerprint_of(const fs::path& folder) {
    std::string fingerprint;
    for (const std::string_view name : run_format::all_files) {
        struct stat status {};
        if (stat((folder / name).c_str(), &status) == 0) {
            fingerprint += fmt::format("{}:{}:{}.{:09} ", name, status.st_size, status.st_mtim.tv_sec,
                                       status.st_mtim.tv_nsec);
        }
    }
    return fingerprint;
}

std::vector<fs::path> folders_in(const fs::path& parent) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
        if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.')) {
            folders.push_back(entry.path());
        }
    }
    std::ranges::sort(folders);
    return folders;
}

/// What makes the file unusable even for a reader.
bool is_damage(int code) {
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_SCHEMA;
}

/// The file is a good database of another version.
struct OtherVersion {
    std::int64_t version;
};

/// The definitions of all tables, indexes and views.
std::string definitions(const Database& database) {
    std::string all;
    Statement each = database.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name");
    while (each.step()) {
        all += each.text(0);
        all += ';';
    }
    return all;
}

/// Throws DatabaseError where a table was taken away or changed by other hands.
void check_definitions(const Database& database) {
    Database fresh(":memory:");
    fresh.execute(schema_sql);
    if (definitions(database) != definitions(fresh)) {
        throw DatabaseError(SQLITE_CORRUPT, database.path(), "its tables are not those of this program");
    }
}

void prepare_schema(Database& database) {
    const auto is_ours = [&] { return database.query_integer("PRAGMA user_version") == schema_version; };
    if (is_ours()) {
        check_definitions(database);
        return;
    }
    Transaction transaction(database);
    if (is_ours()) {
        return;  // another process was faster
    }
    if (database.query_integer("SELECT count(*) FROM sqlite_master") > 0) {
        throw OtherVersion{database.query_integer("PRAGMA user_version")};
    }
    database.execute(schema_sql);
    database.execute(fmt::format("PRAGMA user_version = {}", schema_version));
    transaction.commit();
}

using HostKey = std::pair<std::string, std::string>;

std::map<HostKey, std::string> stored_fingerprints(const Database& database) {
    std::map<HostKey, std::string> stored;
    Statement all = database.prepare("SELECT run, host, fingerprint FROM runs JOIN hosts USING (run_id)");
    while (all.step()) {
        stored[{std::string(all.text(0)), std::string(all.text(1))}] = all.text(2);
    }
    return stored;
}

/// Digests of hosts in order, read ahead on up to eight threads: reading is most of a merge.
class ReadAhead {
  public:
    explicit ReadAhead(const std::vector<const HostFolder*>& folders) : folders_(folders) {}

    HostDigest next() {
        const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, most_readers);
        while (waiting_.size() < most && started_ < folders_.size()) {
            const HostFolder& folder = *folders_[started_++];
            waiting_.push(std::async(
                std::launch::async, [&folder] { return digest_host(folder.path, folder.run, folder.host); }));
        }
        HostDigest digest = waiting_.front().get();
        waiting_.pop();
        return digest;
    }

  private:
    const std::vector<const HostFolder*>& folders_;
    std::size_t started_ = 0;
    std::queue<std::future<HostDigest>> waiting_;
};

/// Brings `merged.database` up to date. Takes no lock when nothing has changed.
void update(Merged& merged, const std::vector<HostFolder>& folders, const MergeOptions& options) {
    prepare_schema(merged.database);
    merged.hosts_read = merged.hosts_removed = 0;
    auto vanished = stored_fingerprints(merged.database);
    std::vector<const HostFolder*> changed;
    for (const HostFolder& folder : folders) {
        const auto stored = vanished.extract({folder.run, folder.host});
        if (!stored || stored.mapped() != folder.fingerprint) {
            changed.push_back(&folder);
        }
    }
    merged.hosts_unchanged = folders.size() - changed.size();
    if (changed.empty() && vanished.empty()) {
        return;
    }

    HostWriter writer(merged.database);
    if (!vanished.empty()) {
        Transaction transaction(merged.database);
        for (const auto& [key, fingerprint] : vanished) {
            writer.remove(key.first, key.second);
            writer.refresh_run(key.first);
        }
        transaction.commit();
        merged.hosts_removed = vanished.size();
    }
    ReadAhead digests(changed);
    for (std::size_t next = 0; next < changed.size();) {
        Transaction transaction(merged.database);
        const auto end_of_turn = std::chrono::steady_clock::now() + turn;
        std::set<std::string> touched;
        while (next < changed.size() && std::chrono::steady_clock::now() < end_of_turn) {
            const HostFolder& folder = *changed[next++];
            const HostDigest digest = digests.next();
            if (writer.fingerprint(folder.run, folder.host) != folder.fingerprint) {
                writer.write(folder.run, digest, folder.fingerprint);
                touched.insert(folder.run);
                ++merged.hosts_read;
            }
            if (options.progress) {
                options.progress(next, changed.size());
            }
        }
        for (const std::string& run : touched) {
            writer.refresh_run(run);
        }
        transaction.commit();
    }
}

/// A folder in node-local storage, removed with all that is in it.
std::shared_ptr<fs::path> make_working_folder() {
    std::error_code error;
    fs::path parent = fs::temp_directory_path(error);
    if (error) {
        parent = "/tmp";
    }
    std::string name = (parent / "joulemark-merge-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw environment_error(
            "cannot make a temporary folder in {}: {}: set TMPDIR to one that can be written",
            parent.string(), std::system_category().message(errno));
    }
    return std::shared_ptr<fs::path>(new fs::path(name), [](fs::path* folder) {
        std::error_code ignored;
        fs::remove_all(*folder, ignored);
        delete folder;
    });
}

/// Puts a finished copy in the place of DIR/joulemark.sqlite; the reason when that is impossible.
std::optional<std::string> publish(const fs::path& working, const fs::path& target) {
    const fs::path temporary = target.string() + fmt::format(".{}.tmp", getpid());
    std::error_code error, ignored;
    fs::copy_file(working, temporary, fs::copy_options::overwrite_existing, error);
    if (!error) {
        // A journal left by a killed process belongs to the old file and would be rolled back into the new.
        fs::remove(target.string() + "-journal", ignored);
        fs::rename(temporary, target, error);
    }
    if (error) {
        fs::remove(temporary, ignored);
        return error.message();
    }
    return std::nullopt;
}

Merged merge_aside(const fs::path& target, const std::vector<HostFolder>& folders,
                   const MergeOptions& options, bool keep_old) {
    auto folder = make_working_folder();
    const fs::path working = *folder / database_file;
    std::error_code error;
    if (keep_old && fs::is_regular_file(target, error) && !fs::exists(target.string() + "-journal", error)) {
        fs::copy_file(target, working, error);
    }
    const auto open = [&] { return Merged{folder, Database(working), {}}; };
    std::optional<Merged> merged;
    try {
        merged.emplace(open());
        Statement check = merged->database.prepare("PRAGMA quick_check(1)");
        if (check.step() && check.text(0) == "ok") {
            check.reset();
            update(*merged, folders, options);
        } else {
            throw DatabaseError(SQLITE_CORRUPT, working.string(), "quick_check failed");
        }
    } catch (const DatabaseError& damage) {
        if (!is_damage(damage.sqlite_code())) {
            throw;
        }
        merged.reset();
    } catch (const OtherVersion&) {
        merged.reset();
    }
    if (!merged) {
        fs::remove(working, error);
        merged.emplace(open());
        update(*merged, folders, options);
    }
    if (merged->hosts_read + merged->hosts_removed > 0 || !keep_old) {
        if (const auto reason = publish(working, target)) {
            merged->notes.push_back(
                fmt::format("{} cannot be written ({}): the merge is a temporary one and will be made again "
                            "by the next command",
                            target.string(), *reason));
        }
    }
    return std::move(*merged);
}

Merged merge_folders(const fs::path& target, const std::vector<HostFolder>& folders,
                     const MergeOptions& options) {
    if (options.avoid_locks) {
        return merge_aside(target, folders, options, true);
    }
    std::string why;
    try {
        Merged merged{nullptr, Database(target), {}};
        update(merged, folders, options);
        return merged;
    } catch (const OtherVersion& other) {
        why = fmt::format("has schema version {}, this is {}", other.version, schema_version);
    } catch (const DatabaseError& error) {
        // Locks that do not work, a directory that cannot be written, a full disk: all are got round by
        // working elsewhere, and told only if the result cannot be put in place either.
        if (!is_damage(error.sqlite_code())) {
            return merge_aside(target, folders, options, true);
        }
        why = "was damaged";
    }
    Merged merged = merge_aside(target, folders, options, false);
    merged.notes.push_back(
        fmt::format("{} {}: it has been made again from the run files", target.string(), why));
    return merged;
}

}  // namespace

std::vector<HostFolder> host_folders(const fs::path& dir, std::vector<std::string>* empty_runs) {
    std::error_code error;
    if (!fs::is_directory(dir, error)) {
        if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
            throw bad_input("cannot read {}: {}", dir.string(), error.message());
        }
        throw bad_input("there is no directory {}: give the one that joulemark run -o or sweep -o wrote",
                        dir.string());
    }
    if (!fs::is_directory(dir / run_format::runs_folder, error)) {
        throw bad_input("{} has no folder {}: give the directory that joulemark run -o or sweep -o wrote",
                        dir.string(), run_format::runs_folder);
    }
    std::vector<HostFolder> folders;
    for (const fs::path& run : folders_in(dir / run_format::runs_folder)) {
        const std::size_t before = folders.size();
        for (const fs::path& host : folders_in(run)) {
            if (std::string fingerprint = fingerprint_of(host); !fingerprint.empty()) {
                folders.push_back({run.filename(), host.filename(), host, std::move(fingerprint)});
            }
        }
        if (folders.size() == before && empty_runs != nullptr) {
            empty_runs->push_back(run.filename());
        }
    }
    return folders;
}

Merged merge(const fs::path& dir, const MergeOptions& options) {
    std::vector<std::string> empty_runs;
    const std::vector<HostFolder> folders = host_folders(dir, &empty_runs);
    Merged merged = merge_folders(dir / database_file, folders, options);
    if (!empty_runs.empty()) {
        merged.notes.push_back(fmt::format(
            "{} run folder{} in {} hold{} no run files and {} not listed, the first is {}", empty_runs.size(),
            empty_runs.size() == 1 ? "" : "s", (dir / run_format::runs_folder).string(),
            empty_runs.size() == 1 ? "s" : "", empty_runs.size() == 1 ? "is" : "are", empty_runs.front()));
    }
    return merged;
}

}  // namespace joulemark::store
