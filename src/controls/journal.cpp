// SPDX-License-Identifier: Apache-2.0
#include "controls/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>

#include <nlohmann/json.hpp>

namespace joulemark::controls {
namespace {

using nlohmann::json;

constexpr double same_value = 0.5;  // W or MHz: limits are kept to the milliwatt, clocks to the step

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

Outcome undo_one(const Change& change, const std::vector<nvml::Device>& gpus) {
    using State = Outcome::State;
    const std::string what = fmt::format("{} of {}", name(change.kind), change.device);
    const auto gpu = std::ranges::find_if(gpus, [&](const nvml::Device& candidate) {
        const auto uuid = candidate.uuid();
        return uuid && uuid.value == change.uuid;
    });
    if (gpu == gpus.end()) {
        return {change, State::failed, fmt::format("{} could not be restored: {} is not there", what, change.uuid)};
    }
    const auto now = current(*gpu, change.kind);
    if (now && std::abs(*now - change.enforced) > same_value) {
        return {change, State::changed_by_others,
                fmt::format("{} was left alone: it is {} now, not the {} that was set", what, *now, change.enforced)};
    }
    if (const auto failure = put_back(*gpu, change.kind, change.previous)) {
        return {change, State::failed, fmt::format("{} could not be restored: {}", what, failure->reason)};
    }
    return {change, State::restored,
            change.previous ? fmt::format("{} is {} again", what, *change.previous)
                            : fmt::format("{} is unlocked again", what)};
}

}  // namespace

void Journal::write() const {
    json list = json::array();
    for (const Change& change : changes) {
        list.push_back({{"device", change.device},
                        {"uuid", change.uuid},
                        {"control", name(change.kind)},
                        {"requested", change.requested},
                        {"set", change.enforced},
                        {"previous", optional_json(change.previous)}});
    }
    files::write_atomically(file, json{{"boot_id", boot_id}, {"changes", list}}.dump(1) + "\n");
}

void Journal::remove() const {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
}

std::optional<Journal> Journal::read(const std::filesystem::path& file) {
    const auto content = files::read(file);
    const json document = json::parse(content.value_or(""), nullptr, false);
    if (!document.is_object()) {
        return std::nullopt;
    }
    Journal journal{file, document.value("boot_id", ""), {}};
    try {
        for (const json& entry : document.at("changes")) {
            const auto kind = kind_named(entry.at("control").get<std::string>());
            if (!kind) {
                return std::nullopt;
            }
            journal.changes.push_back({entry.at("device"), entry.at("uuid"), *kind, entry.at("requested"), entry.at("set"),
                                       entry.at("previous").is_null() ? std::nullopt
                                                                      : std::optional<double>(entry.at("previous"))});
        }
    } catch (const json::exception&) {
        return std::nullopt;
    }
    return journal;
}

std::filesystem::path control_directory() {
    const char* chosen = std::getenv("JOULEMARK_CONTROL_DIR");
    std::filesystem::path directory;
    if (chosen != nullptr && *chosen != '\0') {
        directory = chosen;
    } else if (geteuid() == 0) {
        directory = "/run/joulemark";
    } else {
        directory = fmt::format("/tmp/joulemark-{}", geteuid());
    }
    files::make_directories(directory);
    return directory;
}

std::string boot_id() { return files::read_line("/proc/sys/kernel/random/boot_id").value_or("unknown"); }

std::optional<files::Descriptor> lock_gpu(const std::string& uuid) {
    const auto file = control_directory() / fmt::format("{}.lock", uuid);
    files::Descriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) {
        throw environment_error("cannot open the lock {}: make the directory writable, or name another in JOULEMARK_CONTROL_DIR",
                                file.string());
    }
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        return std::nullopt;
    }
    return lock;
}

std::vector<Outcome> undo(const std::vector<Change>& changes, const std::vector<nvml::Device>& gpus) {
    std::vector<Outcome> outcomes;
    for (const Change& change : std::views::reverse(changes)) {
        outcomes.push_back(undo_one(change, gpus));
    }
    return outcomes;
}

}  // namespace joulemark::controls
