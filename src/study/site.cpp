// SPDX-License-Identifier: Apache-2.0
#include "study/site.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "launch/programs.h"

namespace joulemark::study {
namespace {

namespace fs = std::filesystem;

Error missing_program(const std::string& name, std::string_view remedy) {
    return environment_error("the program '{}' is neither beside joulemark nor on PATH: {}", name, remedy);
}

void check_workload(const Study& study, const Workload& workload, std::vector<Error>& found) {
    const auto needs = [&](const std::string& name, std::string_view remedy) {
        Error missing = missing_program(name, remedy);
        const auto is_same = [&](const Error& error) { return std::string_view(error.what()) == missing.what(); };
        if (!launch::find_program(name) && std::ranges::none_of(found, is_same)) {
            found.push_back(std::move(missing));
        }
    };
    if (workload.simulated()) {
        return;
    }
    if (workload.model.empty()) {
        // Under Slurm, or with a PATH of its own, the command may be where this process cannot look.
        const std::string& program = workload.command.front();
        if (study.launcher != launch::Launcher::slurm && !study.environment.contains("PATH") &&
            program.find('{') == std::string::npos) {
            needs(program, fmt::format("workload {} of {} starts it", workload.name, study.file.string()));
        }
        return;
    }
    needs("joulemark-train", "build it with the preset release or gpu");
    std::error_code error;
    if (!workload.dataset.empty() && workload.dataset != "synthetic" && !fs::exists(workload.dataset, error)) {
        found.push_back(bad_input("{}: the dataset {} of workload {} does not exist; {}", study.file.string(),
                                  workload.dataset, workload.name,
                                  workload.make_dataset.empty()
                                      ? "docs/workloads.md says where the data of each model come from"
                                      : "make it with: " + workload.make_dataset));
    }
}

}  // namespace

std::optional<int> gpus_per_node(const Study& study, const Site& site) {
    if (study.simulation) {
        return study.simulation->gpus_per_node;
    }
    return study.gpus_per_node ? study.gpus_per_node : site.gpus_per_node;
}

std::vector<Error> obstacles(const Study& study, const Site& site) {
    std::vector<Error> found;
    for (const Series& series : study.series) {
        for (const Workload& workload : series.workloads) {
            check_workload(study, workload, found);
        }
    }
    if (study.launcher == launch::Launcher::mpirun && !launch::find_program("mpirun")) {
        found.push_back(missing_program("mpirun", "install Open MPI, or use another launcher"));
    }
    if (study.launcher == launch::Launcher::slurm) {
        if (!launch::find_program("srun")) {
            found.push_back(
                missing_program("srun", "start the sweep where Slurm is, or use another launcher"));
        }
        if (!gpus_per_node(study, site)) {
            found.push_back(
                bad_input("{}: launcher slurm needs 'gpus_per_node', as this machine has no GPU to count",
                          study.file.string()));
        }
    }
    if (study.simulation && !launch::find_program("joulemark-sim")) {
        found.push_back(missing_program("joulemark-sim", "build the target joulemark-sim"));
    }
    if (study.simulation && !launch::simulated_nvml()) {
        found.push_back(environment_error(
            "the simulated libnvidia-ml.so.1 is not where this joulemark looks for it: build "
            "or install Joulemark as a whole"));
    }
    return found;
}

std::string controls_problem(const Study& study, const Site& site) {
    if (study.simulation) {
        return "";
    }
    if (study.launcher != launch::Launcher::slurm && !site.limits.gpus) {
        return "there is no GPU here to set them on";
    }
    return site.job.root ? "" : "setting them needs root";
}

bool sets_controls(const PlannedRun& run) {
    return run.factors.find("power_cap_w") != nullptr || run.factors.find("sm_clock_mhz") != nullptr;
}

}  // namespace joulemark::study
