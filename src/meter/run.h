// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace joulemark::meter {

/// What `joulemark run` was asked to do. Numbers are checked by whoever fills it in.
struct RunOptions {
    std::vector<std::string> command;
    std::filesystem::path directory = "joulemark-results";
    std::string name;    ///< "": the command's file name
    std::string run_id;  ///< "": made from the name and the time, or the job
    std::map<std::string, std::string> tags;
    std::map<std::string, std::string> factors;  ///< numbers are stored as such

    double rate_hz = 10;
    std::optional<double> energy_rate_hz;  ///< absent: 1 Hz, less where reading is expensive
    double idle_s = 0;
    bool estimate_cpu = false;
    std::optional<double> power_cap_w, sm_clock_mhz;

    bool mllog = false;
    std::string epoch_regex, epoch_end_regex;  ///< "": none

    struct Study {
        std::string name;
        int repeat = 0, position = 0;
    };
    std::optional<Study> study;
    std::vector<std::string> expected_hosts;  ///< empty: as the job's environment tells
    bool calibrated = true;  ///< note what calibration knows of the sensors
    bool quiet = false;
};

/// Meters the command and returns its exit status: 128+n after signal n, 127 when it is not found, 126 when
/// it cannot be executed. Throws Error before the command begins: with ExitCode::before_child for what is
/// Joulemark's own failure, as it comes for a wrong option or a control that cannot be set.
int run(const RunOptions& options);

}  // namespace joulemark::meter
