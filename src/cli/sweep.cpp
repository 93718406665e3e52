// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/shell.h"
#include "launch/programs.h"
#include "sensors/catalog.h"
#include "store/host_digest.h"
#include "store/summary.h"
#include "study/dry_run.h"
#include "study/plan_file.h"
#include "study/rehearsal.h"
#include "study/runner.h"

namespace joulemark::cli {
namespace {

struct Options {
    std::string study;
    std::string directory;
    std::string budget;
    std::string simulate, truth;
    bool dry_run = false;
    bool keep_going = false;
    bool json = false;
    bool quiet = false;
};

std::vector<const sensors::Device*> gpus_of(const sensors::Machine& machine) {
    std::vector<const sensors::Device*> gpus;
    for (const sensors::Device& device : machine.devices) {
        if (device.component == "gpu") {
            gpus.push_back(&device);
        }
    }
    return gpus;
}

nlohmann::json truth_of(const std::string& text) {
    if (text.empty()) {
        return nlohmann::json::object();
    }
    auto truth = nlohmann::json::parse(text, nullptr, false);
    if (!truth.is_object()) {
        throw bad_input("--truth must be a JSON object such as '{{\"gpu_exponent\": 0.9}}', not '{}'", text);
    }
    return truth;
}

/// What every one of the GPUs can do: the narrowest of their ranges.
study::Limits limits_of(const std::vector<const sensors::Device*>& gpus) {
    study::Limits limits;
    if (gpus.empty()) {
        return limits;
    }
    limits.gpus = static_cast<int>(gpus.size());
    study::Range cap{0, std::numeric_limits<double>::infinity()};
    for (const sensors::Device* gpu : gpus) {
        cap.low = std::max(cap.low, gpu->power_limit_min_w.value_or(0));
        cap.high = std::min(cap.high, gpu->power_limit_max_w.value_or(cap.high));
        if (gpu->sm_clock_max_mhz) {
            limits.sm_clock_max_mhz =
                std::min(limits.sm_clock_max_mhz.value_or(*gpu->sm_clock_max_mhz), *gpu->sm_clock_max_mhz);
        }
    }
    if (std::isfinite(cap.high)) {
        limits.power_cap_w = cap;
    }
    return limits;
}

std::optional<double> hottest_gpu_c(const sensors::Machine& machine) {
    std::optional<double> hottest;
    for (const auto& source : machine.sources) {
        const auto& metrics = source->info().metrics;
        const auto found = std::ranges::find(metrics, sensors::Metric::gpu_temperature_c);
        if (found == metrics.end()) {
            continue;
        }
        std::vector<double> values(metrics.size());
        source->read(values);
        const double value = values[static_cast<std::size_t>(found - metrics.begin())];
        if (!std::isnan(value)) {
            hottest = std::max(hottest.value_or(value), value);
        }
    }
    return hottest;
}

/// Of a run's hosts, all that was metered; nothing when that is nothing.
std::optional<study::Used> used(const std::filesystem::path& run_folder) {
    store::RunRecord run;
    std::error_code error;
    for (const auto& host : std::filesystem::directory_iterator(run_folder, error)) {
        run.hosts.push_back(
            store::digest_host(host.path(), run_folder.filename().string(), host.path().filename().string())
                .record);
    }
    const auto command = store::summarise_run(run).command.value_or(store::RegionSummary{});
    const auto measured_j = command.sum.measured_j();
    return measured_j ? std::optional(study::Used{*measured_j, command.energy_j.has_value(), command.sum.simulated()}) : std::nullopt;
}

study::Site find_site(const study::Study& study) {
    study::Site site;
    site.joulemark = launch::own_program();
    site.job.slots = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    site.job.root = geteuid() == 0;
    site.used = used;
    site.hottest_gpu_c = [] { return std::optional<double>(); };
    if (study.simulation) {
        return site;
    }
    const auto machine = std::make_shared<sensors::Machine>(sensors::discover({}));
    const study::Limits limits = limits_of(gpus_of(*machine));
    site.gpus_per_node = limits.gpus;
    // Under Slurm the runs are elsewhere, on GPUs that only they can ask.
    if (study.launcher != launch::Launcher::slurm && limits.gpus) {
        site.limits = limits;
        site.job.visible_gpus =
            launch::visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"), machine->gpus_on_node);
        site.hottest_gpu_c = [machine] { return hottest_gpu_c(*machine); };
    }
    return site;
}

/// What a sweep would run into. The runs get the positions that an earlier call gave them, where it can go on.
std::vector<std::string> find_problems(const study::Study& study, const study::Site& site,
                                       const std::filesystem::path& directory,
                                       std::vector<study::PlannedRun>& runs) {
    std::vector<std::string> problems;
    for (const Error& obstacle : study::obstacles(study, site)) {
        problems.emplace_back(obstacle.what());
    }
    try {
        study::continue_plan(directory, study, runs);
    } catch (const Error& error) {
        problems.emplace_back(error.what());
    }
    const auto controlled = std::ranges::count_if(
        runs, [](const auto& run) { return run.skipped.empty() && study::sets_controls(run); });
    if (const std::string reason = study::controls_problem(study, site); controlled > 0 && !reason.empty()) {
        problems.push_back(fmt::format("{} of {} runs set power caps or clocks and would most likely be skipped: {}",
                                       controlled, runs.size(), reason));
    }
    return problems;
}

}  // namespace

int sweep_command(const Arguments& arguments) {
    Options options;
    CLI::App app("Makes the runs of a study, one after the other; called again, it goes on where it stopped.",
                 "sweep");
    app.add_option("study", options.study, "the study file")->required()->type_name("STUDY.yaml");
    app.add_option("-o,--output", options.directory, "results directory; default joulemark-results/<study>")
        ->type_name("DIR");
    app.add_flag("--dry-run", options.dry_run,
                 "list every run with its expected GPU hours and energy, and make none");
    app.add_flag("--json", options.json, "with --dry-run: one JSON document on stdout");
    app.add_option(
           "--budget", options.budget,
           "stop before the run with which all runs of the directory would have used more, such as 40kWh")
        ->type_name("ENERGY");
    app.add_flag("--keep-going", options.keep_going,
                 "go on when three runs in a row have failed, where a sweep stops otherwise");
    app.add_option("--simulate", options.simulate,
                   "rehearse: simulated training on simulated GPUs of this kind in place of every workload")
        ->type_name("GPU")
        ->check(CLI::IsMember({"V100", "A100", "H100", "H200"}));
    app.add_option("--truth", options.truth,
                   "with --simulate: what the simulated work obeys, a JSON object (docs/simulation.md)")
        ->type_name("JSON");
    app.add_flag("-q,--quiet", options.quiet, "only what went wrong");
    app.footer(
        "Example: joulemark sweep studies/quick.yaml -o results\n"
        "Exit status: 0 all runs done or skipped with a reason, 2 wrong study file, 3 some runs failed or "
        "are left.");
    if (!parse(app, arguments)) {
        return 0;
    }
    if (arguments.has_separator) {
        throw bad_input("sweep takes its command from the study file: put it there as workload.command");
    }
    if (options.json && !options.dry_run) {
        throw bad_input(
            "sweep prints JSON only with --dry-run; the results of a sweep: joulemark analyze DIR --json");
    }
    study::SweepOptions sweep{.directory = options.directory,
                              .budget_j = {},
                              .keep_going = options.keep_going,
                              .quiet = options.quiet,
                              .again = "joulemark sweep " + shell_line(arguments.options)};
    if (!options.budget.empty()) {
        sweep.budget_j = study::parse_energy_j(options.budget);
        if (!sweep.budget_j) {
            throw bad_input("--budget {} is no energy: write a number with its unit, such as 40kWh or 500kJ",
                            options.budget);
        }
    }
    study::Study study = study::read_study(options.study, !options.simulate.empty());
    if (!options.simulate.empty()) {
        study = study::rehearsal(std::move(study), options.simulate, truth_of(options.truth));
    } else if (!options.truth.empty()) {
        throw bad_input("--truth says what simulated work obeys: give --simulate too");
    }
    if (options.directory.empty()) {
        sweep.directory = std::filesystem::path("joulemark-results") / study.name;
    }
    const study::Site site = find_site(study);
    if (!options.dry_run) {
        return study::sweep(study, site, sweep);
    }
    std::vector<study::PlannedRun> runs = study::plan(study, site.limits);
    const std::vector<std::string> problems = find_problems(study, site, sweep.directory, runs);
    const study::Remaining rest = study::remaining(sweep.directory, study, runs);
    fmt::print("{}", options.json ? study::dry_run_json(study, runs, rest, problems).dump(1) + "\n"
                                  : study::dry_run_text(study, runs, rest, problems));
    return 0;
}

}  // namespace joulemark::cli
