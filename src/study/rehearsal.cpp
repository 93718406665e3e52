// SPDX-License-Identifier: Apache-2.0
#include "study/rehearsal.h"

#include <cmath>

namespace joulemark::study {
namespace {

/// One GPU's epoch time and the exponent over GPUs, as expected of a workload; empty where nothing is.
nlohmann::json expected_truth(const Expectation& expect, const Workload& workload) {
    nlohmann::json truth = nlohmann::json::object();
    if (expect.gpu_hours.size() >= 2) {
        // Two points of the line through the logarithms of the epoch time.
        const auto point = [&](const std::pair<Level, double>& entry) {
            const double gpus = entry.first.number.value_or(1);
            return std::pair(gpus, entry.second * 3600 / gpus / workload.epochs);
        };
        const auto [few, first_s] = point(expect.gpu_hours.front());
        const auto [many, last_s] = point(expect.gpu_hours.back());
        const double slope = std::log(last_s / first_s) / std::log(many / few);
        const double one_gpu_s = first_s * std::pow(few, -slope);
        truth["epoch_time_s"] = one_gpu_s;
        truth["gpu_exponent"] = (workload.samples_per_gpu ? 1 : 0) - slope;
    } else if (expect.epoch_time_s) {
        truth["epoch_time_s"] = *expect.epoch_time_s * std::pow(expect.gpus, -expect.gpu_exponent);
        truth["gpu_exponent"] = -expect.gpu_exponent;
    } else {
        return truth;
    }
    if (workload.samples_per_gpu || workload.samples) {
        truth["samples"] =
            workload.samples_per_gpu.value_or(static_cast<double>(workload.samples.value_or(0)));
    }
    return truth;
}

}  // namespace

Study rehearsal(Study study, const std::string& accelerator, const nlohmann::json& truth) {
    if (!study.simulation) {
        study.simulation.emplace();
        study.simulation->gpus_per_node = study.gpus_per_node.value_or(1);
        study.simulation->seed = study.seed;
    }
    study.simulation->accelerator = accelerator;
    study.simulation->truth.update(truth);
    study.name += "-simulated";
    study.launcher = launch::Launcher::local;
    study.launcher_arguments.clear();
    study.cooldown_c.reset();
    for (Series& series : study.series) {
        for (Workload& workload : series.workloads) {
            if (workload.simulated()) {
                continue;
            }
            workload.model = "simulated";
            workload.command.clear();
            workload.arguments.clear();
            if (const auto& expect = workload.expect ? workload.expect : series.expect) {
                workload.truth = expected_truth(*expect, workload);
            }
        }
    }
    return study;
}

}  // namespace joulemark::study
