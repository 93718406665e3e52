// SPDX-License-Identifier: Apache-2.0
#include "controls/controls.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace joulemark::controls {
namespace {

std::shared_ptr<nvml::Library> open_library() {
    auto library = nvml::Library::open();
    if (!library) {
        throw environment_error("GPU settings cannot be changed: {}; {}", library.failure().reason,
                                library.failure().remedy);
    }
    return *library;
}

const nvml::Device& find(const std::vector<nvml::Device>& gpus, const Target& target) {
    const auto found = std::ranges::find_if(gpus, [&](const nvml::Device& gpu) {
        const auto uuid = gpu.uuid();
        return uuid && uuid.value == target.uuid;
    });
    if (found == gpus.end()) {
        throw environment_error("{} ({}) does not answer, so it cannot be set", target.device, target.uuid);
    }
    return *found;
}

Change planned(const nvml::Device& gpu, const Target& target, Kind kind, double wanted) {
    const auto value = closest(gpu, kind, wanted);
    if (!value) {
        throw bad_input("{} of {} cannot be set: {}; {}", name(kind), target.device, value.failure().reason,
                        value.failure().remedy);
    }
    return {target.device, target.uuid, kind, wanted, *value, current(gpu, kind)};
}

void set_or_throw(const nvml::Device& gpu, const Change& change) {
    if (const auto failure = set(gpu, change.kind, change.enforced)) {
        throw environment_error("{} of {} cannot be set: {}{}{}", name(change.kind), change.device, failure->reason,
                                failure->remedy.empty() ? "" : "; ", failure->remedy);
    }
}

void check_read_back(const nvml::Device& gpu, const Change& change) {
    const auto now = current(gpu, change.kind);
    if (now && std::abs(*now - change.enforced) > 0.5) {
        throw environment_error("{} of {} was set to {} but reads {}: another limit is in force", name(change.kind),
                                change.device, change.enforced, *now);
    }
}

std::filesystem::path guard_program() {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto beside = self.parent_path() / "joulemark-guard";
    if (error || access(beside.c_str(), X_OK) != 0) {
        throw environment_error("{} is missing, without which a killed run would leave GPU settings changed: install it",
                                beside.string());
    }
    return beside;
}

}  // namespace

/// The process that undoes a journal when this one dies: it waits for end-of-file on a socket whose other end only
/// this process holds. It inherits the locks, so that nobody else sets the GPUs before it is done.
class Controls::Guard {
  public:
    explicit Guard(const Journal& journal, const std::vector<files::Descriptor>& locks) {
        const std::string program = guard_program();
        // A socket rather than a pipe: writing to a guard that was killed must not raise SIGPIPE.
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            throw environment_error("cannot make a socket to the guard: {}", std::strerror(errno));
        }
        files::Descriptor reading(ends[0]);
        alive_ = files::Descriptor(ends[1]);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, reading.get(), STDIN_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        for (const auto& lock : locks) {
            // Duplicating onto itself clears close-on-exec.
            posix_spawn_file_actions_adddup2(&actions, lock.get(), lock.get());
        }
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        // A session of its own: Ctrl-C and a hang-up of the terminal are not for it.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        std::string file = journal.file.string();
        std::string name = program;
        char* arguments[] = {name.data(), file.data(), nullptr};
        const int error = posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) {
            throw environment_error("cannot start {}: {}", program, std::strerror(error));
        }
    }

    /// All is restored, or the journal stays for `joulemark restore`: either way nothing is left for it to do.
    ~Guard() {
        const char done = 'd';
        send(alive_.get(), &done, 1, MSG_NOSIGNAL);
        alive_.reset();
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    files::Descriptor alive_;
    pid_t pid_ = -1;
};

Controls::Controls() = default;
Controls::Controls(Controls&&) noexcept = default;

Controls Controls::apply(const Request& request, const std::vector<Target>& targets) {
    if (targets.empty()) {
        throw environment_error("there is no GPU whose power cap or clock could be set: see joulemark doctor");
    }
    // What a killed run left changed would pass for the previous value.
    restore_all();
    Controls controls;
    controls.library_ = open_library();
    controls.gpus_ = controls.library_->devices().devices;
    const std::string unique = fmt::format("{}-{}.journal", getpid(), MonotonicClock().now_ns());
    controls.journal_ = {control_directory() / unique, boot_id(), {}};
    for (const Target& target : targets) {
        const nvml::Device& gpu = find(controls.gpus_, target);
        auto lock = lock_gpu(target.uuid);
        if (!lock) {
            throw environment_error("{} is being set by another run: wait for it, or use another GPU", target.device);
        }
        controls.locks_.push_back(std::move(*lock));
        if (request.power_cap_w) {
            controls.journal_.changes.push_back(planned(gpu, target, Kind::power_cap, *request.power_cap_w));
        }
        if (request.sm_clock_mhz) {
            controls.journal_.changes.push_back(planned(gpu, target, Kind::sm_clock, *request.sm_clock_mhz));
        }
    }
    std::vector<Change>& changes = controls.journal_.changes;
    controls.journal_.write();
    std::size_t done = 0;
    try {
        controls.guard_ = std::make_unique<Guard>(controls.journal_, controls.locks_);
        for (const Change& change : changes) {
            const nvml::Device& gpu = find(controls.gpus_, {change.device, change.uuid});
            set_or_throw(gpu, change);
            ++done;
            check_read_back(gpu, change);
        }
    } catch (const Error&) {
        changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(done), changes.end());
        controls.restore();
        throw;
    }
    return controls;
}

Controls::~Controls() {
    if (library_) {
        restore();
    }
}

std::string Controls::restore() {
    std::string problems;
    bool failed = false;
    for (const Outcome& outcome : undo(journal_.changes, gpus_)) {
        failed = failed || outcome.state == Outcome::State::failed;
        if (outcome.state != Outcome::State::restored) {
            problems += (problems.empty() ? "" : "; ") + outcome.text;
        }
    }
    if (failed) {
        problems += "; run `joulemark restore` to try again";
    } else {
        journal_.remove();
    }
    guard_.reset();
    locks_.clear();
    library_.reset();
    return problems;
}

nlohmann::json Controls::describe() const {
    nlohmann::json document = nlohmann::json::object();
    for (const Change& change : journal_.changes) {
        document[std::string(name(change.kind))][change.device] = {
            {"requested", change.requested},
            {"enforced", change.enforced},
            {"previous", change.previous ? nlohmann::json(*change.previous) : nlohmann::json(nullptr)}};
    }
    return document;
}

Restored restore_all() {
    Restored restored;
    std::vector<std::filesystem::path> journals;
    for (const auto& entry : std::filesystem::directory_iterator(control_directory())) {
        if (entry.path().extension() == ".journal") {
            journals.push_back(entry.path());
        }
    }
    std::ranges::sort(journals);
    std::shared_ptr<nvml::Library> library;
    for (const auto& file : journals) {
        const auto journal = Journal::read(file);
        if (!journal) {
            restored.notes.push_back(fmt::format("{} is not a journal: remove it", file.string()));
            continue;
        }
        if (journal->boot_id != boot_id()) {
            restored.notes.push_back(fmt::format("{} is from before the last reboot, which reset the GPUs: removed", file.string()));
            journal->remove();
            continue;
        }
        std::vector<files::Descriptor> locks;
        const bool free = std::ranges::all_of(journal->changes, [&](const Change& change) {
            // A cap and a clock of one GPU share its lock; the second attempt would find our own.
            const bool repeated = std::ranges::any_of(journal->changes, [&](const Change& other) {
                return other.uuid == change.uuid && &other < &change;
            });
            auto lock = repeated ? std::nullopt : lock_gpu(change.uuid);
            const bool got = repeated || lock.has_value();
            if (lock) {
                locks.push_back(std::move(*lock));
            }
            return got;
        });
        if (!free) {
            restored.notes.push_back(fmt::format("{} belongs to a run that is still going on: left alone", file.string()));
            continue;
        }
        if (!library) {
            library = open_library();
        }
        const auto outcomes = undo(journal->changes, library->devices().devices);
        if (std::ranges::none_of(outcomes, [](const Outcome& o) { return o.state == Outcome::State::failed; })) {
            journal->remove();
        }
        restored.outcomes.insert(restored.outcomes.end(), outcomes.begin(), outcomes.end());
    }
    return restored;
}

}  // namespace joulemark::controls
