// SPDX-License-Identifier: Apache-2.0
#include "analysis/laws.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analysis/factors.h"
#include "stats/selection.h"

namespace joulemark::analysis {
namespace {

using stats::Form;

struct FactorForms {
    const char* factor;
    std::vector<Form> candidates;
};

/// Which forms are asked of which factor: an Amdahl part does not scale with GPUs, clock or power; a response
/// to a cap saturates once the cap no longer binds; work per batch adds up.
const std::array<FactorForms, 5> factor_forms{{
    {"gpus", {Form::power, Form::amdahl, Form::exponential, Form::power_floor}},
    {"power_cap_w", {Form::power, Form::amdahl, Form::exponential, Form::power_floor, Form::saturating}},
    {"sm_clock_mhz", {Form::power, Form::amdahl, Form::exponential, Form::power_floor, Form::saturating}},
    {"local_batch", {Form::power, Form::amdahl, Form::linear, Form::power_floor, Form::saturating}},
    {"global_batch", {Form::power, Form::amdahl, Form::linear, Form::power_floor, Form::saturating}},
}};

constexpr std::array responses{"epoch_time_s", "epoch_energy_j", "energy_j"};

std::vector<stats::Level> levels_of(const Series& series, const char* response) {
    std::vector<stats::Level> levels;
    for (const Configuration* member : series.members) {
        auto values = member->values(response);
        if (!values.empty()) {
            levels.push_back({*member->number(series.factor), std::move(values)});
        }
    }
    return levels;
}

std::size_t distinct(const std::vector<stats::Level>& levels) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        count += i == 0 || levels[i].x != levels[i - 1].x ? 1 : 0;
    }
    return count;
}

void append_laws(std::vector<Law>& laws, const Series& series, const char* response,
                 const std::vector<Form>& candidates) {
    const auto levels = levels_of(series, response);
    Law common{.response = response,
               .factor = series.factor,
               .scaling = series.scaling,
               .group = series.group,
               .fit = {},
               .n_levels = distinct(levels),
               .n_runs = 0,
               .selected = false,
               .reason = "",
               .simulated = any_simulated(series.members)};
    if (common.n_levels < 2) {
        return;  // not measured
    }
    for (const stats::Level& level : levels) {
        common.n_runs += level.values.size();
    }
    if (series.data_grows) {
        common.reason = "no scaling law: the data set grows with the GPUs (dataset_samples differs)";
        laws.push_back(std::move(common));
        return;
    }
    auto selection = stats::select_law(candidates, levels);
    if (selection.fits.empty()) {
        common.reason = selection.reason;
        laws.push_back(std::move(common));
        return;
    }
    const stats::LawFit& best = selection.fits[*selection.selected];
    const bool fits = !best.lack.significant();
    if (!fits) {
        common.reason = fmt::format("no form fits: the best, {}, {}", stats::info(best.form).formula, best.lack.text());
    }
    for (std::size_t i = 0; i < selection.fits.size(); ++i) {
        Law law = common;
        law.fit = std::move(selection.fits[i]);
        if (!fits) {
            laws.push_back(std::move(law));
            continue;
        }
        law.selected = selection.selected == i;
        law.reason = law.selected ? selection.reason : "";
        if (law.selected && law.n_levels == 3) {
            law.reason = "3 levels; " + law.reason;
        }
        laws.push_back(std::move(law));
    }
}

/// Of the two batch factors, the one that does not vary by its own right: local batch does, unless the
/// study states global ones.
bool follows_from_other(const Series& series) {
    if (series.factor != "local_batch" && series.factor != "global_batch") {
        return false;
    }
    const bool global = std::ranges::all_of(series.members, [](const Configuration* c) {
        return c->runs.front()->global_batch_stated || !c->number("local_batch");
    });
    return (series.factor == "global_batch") != global;
}

}  // namespace

std::vector<Law> laws_of(const std::vector<Configuration>& configurations) {
    std::vector<Law> laws;
    for (const auto& [factor, candidates] : factor_forms) {
        for (const Series& series : series_over(configurations, factor)) {
            if (follows_from_other(series)) {
                continue;
            }
            for (const char* response : responses) {
                append_laws(laws, series, response, candidates);
            }
        }
    }
    return laws;
}

std::vector<ScalingTable> scaling_of(const std::vector<Configuration>& configurations) {
    std::vector<ScalingTable> tables;
    for (const Series& series : series_over(configurations, "gpus")) {
        if (series.data_grows) {
            continue;
        }
        ScalingTable table{.scaling = series.scaling,
                           .group = series.group,
                           .baseline_gpus = 0,
                           .rows = {},
                           .simulated = any_simulated(series.members)};
        const Configuration* baseline = nullptr;
        for (const Configuration* member : series.members) {
            const Value time = member->mean("epoch_time_s");
            if (!time || *time <= 0) {
                continue;
            }
            baseline = baseline == nullptr ? member : baseline;
            table.baseline_gpus = *baseline->number("gpus");
            ScalingTable::Row row;
            row.gpus = *member->number("gpus");
            row.epoch_time_s = *time;
            row.speed_up = *baseline->mean("epoch_time_s") / *time;
            row.efficiency = row.speed_up * table.baseline_gpus / row.gpus;
            row.epoch_energy_j = member->mean("epoch_energy_j");
            if (const Value base = baseline->mean("epoch_energy_j");
                base && row.epoch_energy_j && *base > 0) {
                row.energy_ratio = *row.epoch_energy_j / *base;
            }
            row.preliminary = member->preliminary();
            table.rows.push_back(row);
        }
        if (table.rows.size() >= 2) {
            tables.push_back(std::move(table));
        }
    }
    return tables;
}

}  // namespace joulemark::analysis
