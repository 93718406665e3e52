// SPDX-License-Identifier: Apache-2.0
#include "meter/run.h"

#include <charconv>
#include <cmath>
#include <map>

#include "cli/commands.h"
#include "core/csv.h"
#include "core/error.h"

namespace joulemark::cli {
namespace {

/// "k=v" options as a map.
std::map<std::string, std::string> pairs(const std::vector<std::string>& words, std::string_view option) {
    std::map<std::string, std::string> result;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw bad_input("{} '{}' must read name=value", option, word);
        }
        if (!result.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
            throw bad_input("{} names '{}' twice", option, word.substr(0, equals));
        }
    }
    return result;
}

void require(bool holds, std::string_view option, double value, std::string_view range) {
    if (!holds) {
        throw bad_input("{} {} is out of range: it must be {}", option, value, range);
    }
}

void check(const meter::RunOptions& options) {
    require(options.rate_hz >= 0.1 && options.rate_hz <= 1000, "--rate", options.rate_hz, "0.1 to 1000 Hz");
    if (options.energy_rate_hz) {
        require(*options.energy_rate_hz >= 0.001 && *options.energy_rate_hz <= 100, "--energy-rate",
                *options.energy_rate_hz, "0.001 to 100 Hz");
    }
    for (const char* name : {"gpus", "gpus_per_node", "local_batch", "global_batch", "dataset_samples",
                             "power_cap_w", "sm_clock_mhz"}) {
        const auto factor = options.factors.find(name);
        const auto value = factor == options.factors.end() ? std::nullopt : csv::number(factor->second);
        if (value && !(*value > 0)) {
            throw bad_input("--factor {}={} is out of range: it must be positive", name, factor->second);
        }
    }
    require(options.idle_s >= 0 && options.idle_s <= 86400, "--idle-s", options.idle_s, "0 to 86400 s");
    for (const auto& [option, value] : {std::pair("--power-cap-w", options.power_cap_w),
                                        std::pair("--sm-clock-mhz", options.sm_clock_mhz)}) {
        if (value) {
            require(std::isfinite(*value) && *value > 0, option, *value, "positive");
        }
    }
}

}  // namespace

int run_command(const Arguments& arguments) {
    CLI::App app(
        "Meters a command: its time, energy and hardware use. Input and output stay its own, signals are\n"
        "passed on, and its exit status is kept.",
        "run");
    app.footer("Example: joulemark run --tag model=resnet50 -o results -- python train.py --epochs 3");
    meter::RunOptions options;
    std::vector<std::string> tags;
    std::vector<std::string> factors;
    std::string directory = options.directory;
    std::string estimate;
    meter::RunOptions::Study study;
    app.add_option("-o,--output", directory, "results directory")->type_name("DIR")->capture_default_str();
    app.add_option("--rate", options.rate_hz, "samples per second")->type_name("HZ")->capture_default_str();
    app.add_option("--energy-rate", options.energy_rate_hz,
                   "readings per second of slow energy counters (default 1, fewer where they cost too much)")
        ->type_name("HZ");
    app.add_option("--name", options.name, "name of the run (default: the command's)")->type_name("NAME");
    app.add_option("--tag", tags, "keep a note with the run, repeatable; what is varied is a --factor")
        ->type_name("K=V")
        ->allow_extra_args(false);
    app.add_option("--factor", factors, "a value of the configuration, repeatable")
        ->type_name("K=V")
        ->allow_extra_args(false);
    app.add_option("--estimate", estimate, "estimate what has no sensor: cpu")->type_name("WHAT");
    app.add_option("--power-cap-w", options.power_cap_w, "power limit of the GPUs while the command runs")
        ->type_name("W");
    app.add_option("--sm-clock-mhz", options.sm_clock_mhz,
                   "locked SM clock of the GPUs while the command runs")
        ->type_name("MHZ");
    app.add_flag("--mllog", options.mllog,
                 "take epochs from MLPerf's :::MLLOG lines on the command's output and error");
    app.add_option("--epoch-regex", options.epoch_regex,
                   "take epochs from lines of output and error: a match ends one and begins the next, unless its "
                   "number (?<epoch>..), else the first group, is that of the last; groups (?<loss>..), "
                   "(?<samples>..)")
        ->type_name("RE");
    app.add_option("--epoch-end-regex", options.epoch_end_regex,
                   "the same for lines that are printed when an epoch has ended")
        ->type_name("RE");
    app.add_option("--idle-s", options.idle_s, "meter the idle machine before and after")->type_name("S");
    app.add_option("--run-id", options.run_id, "name of the run's folder, equal on all nodes")
        ->type_name("ID");
    app.add_option("--study", study.name, "the study this run belongs to")->type_name("NAME");
    app.add_option("--repeat", study.repeat, "its number among repeats")->type_name("N");
    app.add_option("--position", study.position, "its place in the study's order")->type_name("N");
    app.add_option("--expected-hosts", options.expected_hosts,
                   "hosts that will deliver data (default: the job's)")
        ->type_name("H,H")
        ->delimiter(',');
    app.add_flag("-q,--quiet", options.quiet, "no summary");
    if (!parse(app, arguments, "-- COMMAND [ARGUMENTS]")) {
        return 0;
    }
    if (arguments.child.empty() || arguments.child.front().empty()) {
        throw bad_input("there is no command to run: joulemark run [OPTIONS] -- COMMAND");
    }
    if (!estimate.empty() && estimate != "cpu") {
        throw bad_input("--estimate '{}' is not known: only 'cpu' can be estimated", estimate);
    }
    if (directory.empty()) {
        throw bad_input("-o needs the name of a directory");
    }
    if (app.count("--run-id") > 0 && options.run_id.empty()) {
        throw bad_input("--run-id needs a name");
    }
    for (const auto& [option, pattern] : {std::pair("--epoch-regex", options.epoch_regex),
                                          std::pair("--epoch-end-regex", options.epoch_end_regex)}) {
        if (app.count(option) > 0 && pattern.empty()) {
            throw bad_input("{} needs a regular expression", option);
        }
    }
    if (!options.epoch_regex.empty() && !options.epoch_end_regex.empty()) {
        throw bad_input("--epoch-regex and --epoch-end-regex mark the same epochs: give the one that fits the lines");
    }
    require(study.repeat >= 0, "--repeat", study.repeat, "0 or more");
    require(study.position >= 0, "--position", study.position, "0 or more");
    options.command = arguments.child;
    options.directory = directory;
    options.estimate_cpu = estimate == "cpu";
    options.tags = pairs(tags, "--tag");
    options.factors = pairs(factors, "--factor");
    if (!study.name.empty()) {
        options.study = study;
    }
    check(options);
    return meter::run(options);
}

}  // namespace joulemark::cli
