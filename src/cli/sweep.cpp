// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "core/error.h"
#include "launch/programs.h"
#include "study/dry_run.h"
#include "study/plan_file.h"
#include "study/runner.h"

namespace joulemark::cli {
namespace {

struct Options {
    std::string study;
    std::string directory;
    std::string budget;
    bool dry_run = false;
    bool json = false;
    bool quiet = false;
};

/// What is known of this machine before a run: nothing that a simulated or a Slurm study could rely on.
study::Site find_site(const study::Study&) {
    study::Site site;
    site.joulemark = launch::own_program();
    site.job.slots = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    site.job.root = geteuid() == 0;
    site.hottest_gpu_c = [] { return std::optional<double>(); };
    site.energy_j = [](const std::filesystem::path&) { return std::optional<double>(); };
    return site;
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
    study::SweepOptions sweep{.directory = options.directory, .budget_j = {}, .quiet = options.quiet};
    if (!options.budget.empty()) {
        sweep.budget_j = study::parse_energy_j(options.budget);
        if (!sweep.budget_j) {
            throw bad_input("--budget {} is no energy: write a number with its unit, such as 40kWh or 500kJ",
                            options.budget);
        }
    }
    const study::Study study = study::read_study(options.study);
    if (options.directory.empty()) {
        sweep.directory = std::filesystem::path("joulemark-results") / study.name;
    }
    const study::Site site = find_site(study);
    if (!options.dry_run) {
        return study::sweep(study, site, sweep);
    }
    std::vector<study::PlannedRun> runs = study::plan(study, site.limits);
    study::continue_plan(sweep.directory, study, runs);
    fmt::print("{}", options.json ? study::dry_run_json(study, runs).dump(1) + "\n"
                                  : study::dry_run_text(study, runs));
    return 0;
}

}  // namespace joulemark::cli
