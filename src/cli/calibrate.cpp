// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.h"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/run_format.h"
#include "launch/programs.h"
#include "meter/calibration_file.h"
#include "meter/run.h"
#include "report/terminal.h"
#include "store/host_digest.h"

namespace joulemark::cli {
namespace {

using nlohmann::json;

/// A results directory that is gone afterwards.
class Scratch {
  public:
    Scratch() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "joulemark-calibrate-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) {
            throw environment_error("cannot make a folder in {}: free space there, or set TMPDIR",
                                    std::filesystem::temp_directory_path().string());
        }
        path_ = pattern;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

std::vector<std::string> command_or_default(const std::vector<std::string>& command) {
    if (!command.empty()) {
        return command;
    }
    const char* simulated = std::getenv("JOULEMARK_SIM");
    const auto simulator = launch::find_program("joulemark-sim");
    if (simulated != nullptr && *simulated != '\0' && simulator) {
        return {simulator->string(), "bursts", "--burst",   "square=400:0.45",
                "--gap-s",           "0.55",   "--repeats", "60"};
    }
    throw bad_input(
        "doctor --calibrate needs a load that comes in bursts and marks each as a region: joulemark doctor "
        "--calibrate -- python3 bench/bursts.py --load-only");
}

/// The host's folder of the one run there.
std::filesystem::path host_folder(const std::filesystem::path& results) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(results / run_format::runs_folder)) {
        if (entry.path().filename() == run_format::run_file) {
            return entry.path().parent_path();
        }
    }
    throw environment_error("the metered command left no run in {}", results.string());
}

std::string uuid_of(const json& run_json, const std::string& device) {
    for (const json& entry : store::json_array(run_json, "devices")) {
        if (store::json_text(entry, "device") == device) {
            return store::json_text(entry, "uuid");
        }
    }
    return "";
}

}  // namespace

int calibrate(const std::vector<std::string>& command, bool as_json) {
    const Scratch scratch;
    meter::RunOptions options;
    options.command = command_or_default(command);
    options.directory = scratch.path();
    options.name = "calibration";
    options.rate_hz = 10;
    options.energy_rate_hz = 100;
    options.calibrated = false;
    options.quiet = true;
    if (const int status = meter::run(options); status != 0) {
        throw environment_error("the load for the calibration ended with status {}: run it alone to see why",
                                status);
    }
    const auto folder = host_folder(scratch.path());
    const store::HostRecord host =
        store::digest_host(folder, folder.parent_path().filename().string(), folder.filename().string())
            .record;

    json found = json::array();
    report::Table table({"device", "refresh ms", "lag ms", "window ms", "bursts", "kept for"});
    std::set<std::string> done;
    for (const store::Attribution& fit : host.attributions) {
        if (!done.insert(fit.device).second) {
            continue;  // all kinds of a device share one fit
        }
        const std::string uuid = uuid_of(host.run_json, fit.device);
        const json calibration{
            {"refresh_s", fit.refresh_s},
            {"lag_s", fit.lag_s},
            {"window_s", fit.window_s},
            {"measured_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
        if (!uuid.empty()) {
            meter::save_calibration(uuid, calibration);
        }
        json row = calibration;
        row["device"] = fit.device;
        row["uuid"] = uuid;
        found.push_back(row);
        table.add({fit.device, fmt::format("{:.2f}", 1e3 * fit.refresh_s),
                   fmt::format("{:.2f}", 1e3 * fit.lag_s), fmt::format("{:.2f}", 1e3 * fit.window_s),
                   fmt::format("{}", fit.regions), uuid.empty() ? "nothing: it has no UUID" : uuid});
    }
    if (found.empty()) {
        std::string reasons;
        for (const store::Warning& warning : host.warnings) {
            if (warning.code == "short_regions") {
                reasons += "; " + warning.text;
            }
        }
        throw environment_error(
            "no counter could be calibrated: the load must mark at least ten bursts of 0.2 to 2 s "
            "as regions, on a device with an energy counter{}",
            reasons);
    }
    if (as_json) {
        fmt::print("{}\n",
                   json{{"calibrations", found}, {"file", meter::calibration_path().string()}}.dump(2));
    } else {
        fmt::print("{}Kept in {}\n", table.text(), meter::calibration_path().string());
    }
    return 0;
}

}  // namespace joulemark::cli
