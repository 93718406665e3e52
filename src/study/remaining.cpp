// SPDX-License-Identifier: Apache-2.0
#include "study/remaining.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/run_format.h"
#include "report/terminal.h"
#include "study/expectation.h"
#include "study/run_state.h"

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;

/// From the start of a host's record to the end of its command.
std::optional<double> recorded_s(const fs::path& host) {
    const auto number = [](const nlohmann::json& object, const char* key) {
        return object.is_object() && object.contains(key) && object[key].is_number()
                   ? std::optional(object[key].get<double>())
                   : std::nullopt;
    };
    const auto read = [](const fs::path& file) {
        return nlohmann::json::parse(files::read(file).value_or(""), nullptr, false);
    };
    const nlohmann::json begin = read(host / run_format::run_file);
    const auto start_ns = number(begin, "start_ns");
    const auto end_ns = number(read(host / run_format::end_file), "end_ns");
    if (!start_ns || !end_ns || begin.value("clock", "") != "monotonic") {
        return std::nullopt;
    }
    return (*end_ns - *start_ns) * 1e-9;
}

/// Before any run is done: of the training alone and the idle machine around it.
std::optional<double> expected_s(const Study& study, const PlannedRun& run) {
    const auto gpu_hours = expect(run).gpu_hours;
    if (!gpu_hours || study.simulation) {  // a simulated hour has no length of its own
        return std::nullopt;
    }
    return *gpu_hours * 3600 / run.gpus + 2 * study.idle_s.value_or(0);
}

}  // namespace

std::optional<Taken> taken(const fs::path& directory, const Study& study, const PlannedRun& run) {
    if (run_state(directory, run.id).kind != RunState::Kind::done) {
        return std::nullopt;
    }
    const fs::path folder = directory / "runs" / run.id;
    Taken result;
    std::error_code error;
    for (const auto& host : fs::directory_iterator(folder, error)) {
        if (const auto seconds = recorded_s(host.path())) {
            result.wall_s = std::max(result.wall_s.value_or(0), *seconds + study.idle_s.value_or(0));
        }
    }
    result.disk_bytes = static_cast<double>(files::total_bytes(folder) +
                                            files::total_bytes(directory / "logs" / (run.id + ".log")));
    return result;
}

Remaining remaining(const Study& study, const std::vector<PlannedRun>& runs, const std::vector<bool>& done,
                    const Ledger& ledger, int first_position) {
    Remaining result;
    result.disk_used_bytes = ledger.disk_bytes();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const PlannedRun& run = runs[i];
        if (done[i]) {
            ++result.done;
            continue;
        }
        if (!run.skipped.empty() || run.position < first_position) {
            continue;
        }
        ++result.left;
        auto wall_s = ledger.wall_s(run);
        if (!wall_s) {
            wall_s = expected_s(study, run);
            result.time_is_expected = result.time_is_expected || wall_s;
        }
        result.wall_s += wall_s.value_or(0);
        result.without_time += wall_s ? 0 : 1;
        if (const auto bytes = ledger.disk_bytes(run)) {
            result.disk_bytes = result.disk_bytes.value_or(0) + *bytes;
        }
    }
    return result;
}

Remaining remaining(const fs::path& directory, const Study& study, const std::vector<PlannedRun>& runs) {
    Ledger ledger;
    std::vector<bool> done;
    for (const PlannedRun& run : runs) {
        const auto known = taken(directory, study, run);
        done.push_back(known.has_value());
        if (known) {
            ledger.add(run, std::nullopt, known->wall_s, known->disk_bytes);
        }
    }
    return remaining(study, runs, done, ledger);
}

std::string Remaining::text(bool simulated) const {
    std::string text = fmt::format("{} of {} runs done", done, done + left);
    if (left > 0 && without_time == 0) {
        text += fmt::format(", about {}{} left", report::duration_text(wall_s), simulated ? " of real time" : "");
    }
    if (left > 0 && disk_bytes) {
        text += fmt::format(", {} of about {} on disk", bytes_text(disk_used_bytes),
                            bytes_text(disk_used_bytes + *disk_bytes));
    }
    return text;
}

std::string bytes_text(double bytes) {
    for (const auto& [unit, name] : {std::pair(1e12, "TB"), std::pair(1e9, "GB"), std::pair(1e6, "MB")}) {
        if (bytes >= unit) {
            return fmt::format("{} {}", report::number_text(bytes / unit), name);
        }
    }
    return fmt::format("{} kB", report::number_text(bytes / 1e3));
}

}  // namespace joulemark::study
