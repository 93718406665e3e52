// SPDX-License-Identifier: Apache-2.0
#include "study/run_state.h"

#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;

nlohmann::json read_object(const fs::path& file) {
    const auto text = files::read(file);
    auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    return json.is_object() ? json : nlohmann::json();
}

/// Of a command, or of another rank's.
void take_status(RunState& state, const nlohmann::json& ended) {
    const auto exit_status = ended.find("exit_status");
    const bool is_known = exit_status != ended.end() && exit_status->is_number_integer();
    const int status = is_known ? exit_status->get<int>() : -1;
    state.exit_status = state.exit_status != 0 ? state.exit_status : status;
}

}  // namespace

RunState run_state(const fs::path& directory, const std::string& run) {
    RunState state;
    std::set<std::string> expected;
    std::set<std::string> ended;
    std::error_code error;
    for (const auto& host : fs::directory_iterator(directory / "runs" / run, error)) {
        state.kind = RunState::Kind::cut;
        const nlohmann::json begin = read_object(host.path() / "run.json");
        const nlohmann::json end = read_object(host.path() / "end.json");
        expected.insert(host.path().filename().string());
        if (begin.is_null() || end.is_null()) {
            continue;
        }
        for (const auto& name : begin.value("expected_hosts", nlohmann::json::array())) {
            expected.insert(name.is_string() ? name.get<std::string>() : "");
        }
        ended.insert(host.path().filename().string());
        take_status(state, end);
        if (const auto failed = end.find("failed_ranks"); failed != end.end()) {
            for (const nlohmann::json& rank : *failed) {
                take_status(state, rank);
            }
        }
    }
    if (state.kind == RunState::Kind::cut && expected == ended) {
        state.kind = state.exit_status == 0 ? RunState::Kind::done : RunState::Kind::failed;
    }
    return state;
}

void supersede(const fs::path& directory, const std::string& run) {
    const fs::path source = directory / "runs" / run;
    if (!fs::exists(source)) {
        return;
    }
    files::make_directories(directory / "superseded");
    fs::path target;
    for (int attempt = 1; target.empty() || fs::exists(target); ++attempt) {
        target = directory / "superseded" / fmt::format("{}-{}", run, attempt);
    }
    std::error_code error;
    fs::rename(source, target, error);
    if (error) {
        throw environment_error("cannot move {} to {}: {}", source.string(), target.string(),
                                error.message());
    }
}

}  // namespace joulemark::study
