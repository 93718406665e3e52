// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyze.h"

#include <algorithm>
#include <iterator>

#include "analysis/configurations.h"
#include "analysis/energy.h"
#include "analysis/laws.h"
#include "analysis/metrics.h"
#include "analysis/warnings.h"

namespace joulemark::analysis {

Model analyze(std::vector<RunMetrics> runs) {
    Model model;
    model.runs = std::move(runs);
    std::ranges::sort(model.runs, {}, &RunMetrics::run);
    for (RunMetrics& run : model.runs) {
        std::ranges::move(run_warnings(run), std::back_inserter(run.warnings));
    }
    model.configurations = configurations_of(model.runs);
    model.laws = laws_of(model.configurations);
    model.scaling = scaling_of(model.configurations);
    model.energy_per_gpu_hour = energy_per_gpu_hour(model.configurations);
    model.energy_per_sample = energy_per_sample(model.configurations);
    model.warnings = study_warnings(model);
    return model;
}

Model analyze(const std::vector<store::RunRecord>& records) {
    std::vector<RunMetrics> runs;
    for (const store::RunRecord& record : records) {
        runs.push_back(run_metrics(record));
    }
    return analyze(std::move(runs));
}

}  // namespace joulemark::analysis
