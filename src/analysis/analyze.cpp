// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyze.h"

#include <algorithm>
#include <iterator>

#include "analysis/configurations.h"
#include "analysis/copies.h"
#include "analysis/crossover.h"
#include "analysis/energy.h"
#include "analysis/given.h"
#include "analysis/laws.h"
#include "analysis/least_energy.h"
#include "analysis/metrics.h"
#include "analysis/published.h"
#include "analysis/quality.h"
#include "analysis/regressions.h"
#include "analysis/sensitivity.h"
#include "analysis/sharing.h"
#include "analysis/trade_off.h"
#include "analysis/wall_calibration.h"
#include "analysis/warnings.h"

namespace joulemark::analysis {

Model analyze(std::vector<RunMetrics> runs) {
    Model model;
    model.runs = std::move(runs);
    std::ranges::sort(model.runs, {}, &RunMetrics::run);
    std::ranges::for_each(model.runs, add_given);
    mark_copied_runs(model.runs);
    warn_of_shared_devices(model.runs);
    for (RunMetrics& run : model.runs) {
        std::ranges::move(run_warnings(run), std::back_inserter(run.warnings));
    }
    model.configurations = configurations_of(model.runs);
    model.laws = laws_of(model.configurations);
    model.scaling = scaling_of(model.configurations);
    model.energy_per_gpu_hour = energy_per_gpu_hour(model.configurations);
    model.energy_per_sample = energy_per_sample(model.configurations);
    model.regressions = power_regressions(model.configurations);
    std::ranges::move(factor_effects(model.configurations), std::back_inserter(model.regressions));
    model.sensitivity = sensitivity_of(model.runs, model.configurations);
    model.wall_calibration = wall_calibrations(model.runs);
    model.least_energy = least_energy_of(model.configurations);
    refuse_without_minimum(model.laws, model.least_energy);
    model.trade_offs = trade_offs(model.configurations);
    model.batch_knees = batch_knees(model.configurations);
    model.hardware = compare_hardware(model.configurations);
    model.published = compare_with_published(model.configurations);
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
