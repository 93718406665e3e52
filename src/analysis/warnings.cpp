// SPDX-License-Identifier: Apache-2.0
#include "analysis/warnings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/configurations.h"
#include "analysis/factors.h"
#include "stats/distributions.h"
#include "stats/summary.h"

namespace joulemark::analysis {
namespace {

constexpr double tolerated_disagreement = 0.03;
constexpr double tolerated_throttling_pct = 1;
/// In a shorter run a few samples a second apart miss its ends, whatever the load does.
constexpr double least_for_decimation_s = 60;

void warn_of_status(std::vector<Warning>& warnings, const RunMetrics& run) {
    if (run.status == "copy") {
        warnings.push_back(
            {"copy", "its recording is that of another run, copied: it is listed but counts once"});
    } else if (run.status == "failed") {
        warnings.push_back(
            {"failed", "the command failed; the run is listed but kept out of configurations"});
    } else if (run.status == "cut") {
        warnings.push_back(
            {"cut",
             "the run has no end: it was cut, or is still running; what was measured until now "
             "is listed but kept out of configurations"});
    } else if (!run.missing_hosts.empty()) {
        warnings.push_back(
            {"incomplete", fmt::format("nothing was received from {}, so there is no total; copy its "
                                       "folder into the run's and analyse again",
                                       fmt::join(run.missing_hosts, ", "))});
    } else if (run.status == "incomplete") {
        warnings.push_back(
            {"incomplete",
             "run.json of a host is missing, so nobody knows what was metered, and there is no "
             "total; copy it into the host's folder and analyse again"});
    }
}

void warn_of_sensors(std::vector<Warning>& warnings, const RunMetrics& run) {
    if (run.energy_counter_j && run.energy_integrated_j && *run.energy_counter_j > 0) {
        const double relative = *run.energy_integrated_j / *run.energy_counter_j - 1;
        if (std::abs(relative) > tolerated_disagreement) {
            warnings.push_back(
                {"counter_vs_integral",
                 fmt::format("the integral of sampled power is {:+.1f} % off the energy counter: one of the "
                             "two sensors misses part of the load",
                             100 * relative)});
        }
    }
    std::vector<std::string> sparse;
    bool of_energy = false;
    for (const Coverage& coverage : run.coverage) {
        if (coverage.covered_pct < store::wanted_coverage_pct && coverage.component != "node") {
            of_energy = of_energy || run.energy_by_component_j.contains(coverage.component);
            sparse.push_back(
                fmt::format("{} on {} cover {:.1f} %", coverage.device, coverage.host, coverage.covered_pct));
        }
    }
    if (!sparse.empty()) {
        warnings.push_back(
            {"coverage", fmt::format("samples of {} of the run{}", fmt::join(sparse, ", of "),
                                     of_energy ? "; energy over the gaps is bounded, not measured" : "")});
    }
    if (run.energy_uncertain) {
        warnings.push_back(
            {"energy_uncertain",
             fmt::format(
                 "gaps leave {:.0f} J beside its {:.0f} J open: it is kept out of configurations, and "
                 "power and energy per GPU hour, sample and epoch are absent",
                 run.provenance["energy_j"].value("bound_j", 0.0), *run.energy_j)});
    }
    const bool long_enough = run.wall_time_s.value_or(0) >= least_for_decimation_s;
    if (long_enough && std::abs(run.decimated_1hz_pct.value_or(0)) > 100 * tolerated_disagreement) {
        warnings.push_back(
            {"fast_fluctuation",
             fmt::format("one power sample a second would put the mean power {:+.1f} % off: integrals of "
                         "slow samples do not fit this load",
                         *run.decimated_1hz_pct)});
    }
    if (const auto partly = run.provenance["energy_j"].find("partly_measured");
        partly != run.provenance["energy_j"].end()) {
        warnings.push_back(
            {"partly_measured", fmt::format("some devices of {} delivered no energy, so there is no total",
                                            fmt::join(partly->get<std::vector<std::string>>(), ", "))});
    }
    if (run.throttled_pct.value_or(0) > tolerated_throttling_pct && !number(run.factors, "power_cap_w")) {
        warnings.push_back(
            {"throttled", fmt::format("the driver slowed the GPUs down for power or heat in {:.1f} % of "
                                      "the run; cool them or compare at a cap that never binds",
                                      *run.throttled_pct)});
    }
}

void warn_of_heat(std::vector<Warning>& warnings, const RunMetrics& run) {
    if (run.baseline.steady == false) {
        warnings.push_back(
            {"not_steady",
             fmt::format("a GPU's temperature changed by {:+.1f} K over the timed epochs: power drifts with "
                         "it; add warm-up epochs",
                         *run.baseline.temperature_change_k)});
    }
}

void warn_of_billing(std::vector<Warning>& warnings, const RunMetrics& run) {
    const auto gpus = number(run.factors, "gpus");
    const auto per_node = number(run.factors, "gpus_per_node");
    // GPU boards are metered one by one; a wall meter, CPUs and tables know only whole nodes.
    const bool whole_node =
        run.imported || run.gpu_count > gpus.value_or(0) ||
        std::ranges::any_of(run.components, [](const std::string& c) { return c != "gpu"; });
    if (gpus && per_node && *gpus < *per_node && whole_node) {
        warnings.push_back(
            {"node_billed_whole",
             fmt::format("{:.0f} of a node's {:.0f} GPUs were used, but the whole node is billed to "
                         "the run: its energy per GPU hour is not comparable with full nodes",
                         *gpus, *per_node)});
    } else if (gpus && !run.imported && run.gpu_count > 0 && *gpus != run.gpu_count &&
               run.missing_hosts.empty()) {
        warnings.push_back(
            {"gpus_not_metered",
             fmt::format("the configuration has {:.0f} GPU{}, {:.0f} {} metered: energies are of those "
                         "metered, energy per GPU hour is over those configured",
                         *gpus, *gpus == 1 ? "" : "s", run.gpu_count, run.gpu_count == 1 ? "was" : "were")});
    }
}

/// Equal codes of many runs become one line that names the first.
std::vector<Warning> collected(const std::vector<RunMetrics>& runs) {
    struct Said {
        std::string first_run, text;
        std::set<std::string> runs;
    };
    std::vector<std::string> order;
    std::map<std::string, Said> groups;
    for (const RunMetrics& run : runs) {
        for (const Warning& warning : run.warnings) {
            Said& group = groups[warning.code];
            if (group.runs.empty()) {
                order.push_back(warning.code);
                group.first_run = run.run;
                group.text = warning.text;
            }
            group.runs.insert(run.run);
        }
    }
    std::vector<Warning> lines;
    for (const std::string& code : order) {
        const Said& group = groups[code];
        const std::size_t more = group.runs.size() - 1;
        lines.push_back(
            {code,
             fmt::format("{}: {}{}", group.first_run, group.text,
                         more == 0 ? "" : fmt::format(" (and {} more run{})", more, more == 1 ? "" : "s"))});
    }
    return lines;
}

void warn_of_nature(std::vector<Warning>& warnings, const Model& model) {
    const auto count = [&](bool RunMetrics::*flag) { return std::ranges::count(model.runs, true, flag); };
    if (const auto simulated = count(&RunMetrics::simulated); simulated > 0) {
        warnings.push_back({"simulated", fmt::format("{} of {} runs are simulated: no device was measured",
                                                     simulated, model.runs.size())});
    }
    if (const auto estimated = count(&RunMetrics::estimated); estimated > 0) {
        warnings.push_back(
            {"estimated", fmt::format("the CPU energy of {} of {} runs is estimated from utilisation "
                                      "and rated power, not measured",
                                      estimated, model.runs.size())});
    }
    std::set<std::vector<std::string>> components;
    for (const RunMetrics& run : model.runs) {
        if (run.energy_j && !run.imported) {
            components.insert(run.components);
        }
    }
    if (components.size() > 1) {
        std::vector<std::string> sets;
        for (const auto& set : components) {
            sets.push_back(fmt::format("{}", fmt::join(set, " + ")));
        }
        warnings.push_back(
            {"unlike_components",
             fmt::format("energies cover different components ({}): compare only runs with the same",
                         fmt::join(sets, "; "))});
    }
}

void warn_of_repeats(std::vector<Warning>& warnings, const Model& model) {
    std::size_t single = 0, two = 0, same_seed = 0;
    for (const Configuration& configuration : model.configurations) {
        single += configuration.preliminary() ? 1 : 0;
        two += configuration.repeats() == 2 ? 1 : 0;
        std::set<std::string> seeds;
        for (const RunMetrics* run : configuration.runs) {
            seeds.insert(run->train_seed);
        }
        same_seed += configuration.runs.size() > 1 && seeds.size() == 1 && !seeds.contains("") ? 1 : 0;
    }
    const std::size_t all = model.configurations.size();
    if (single > 0) {
        warnings.push_back(
            {"preliminary", fmt::format("{} of {} configurations were run once: preliminary, without "
                                        "interval, never significant; repeat them",
                                        single, all)});
    }
    if (two > 0) {
        warnings.push_back(
            {"few_repeats", fmt::format("{} of {} configurations were run twice: their intervals are "
                                        "12.7 standard errors wide to each side; a third run makes "
                                        "that 4.3",
                                        two, all)});
    }
    if (same_seed > 0) {
        warnings.push_back(
            {"train_seed_fixed",
             fmt::format("repeats of {} of {} configurations share one training seed: their scatter is "
                         "hardware noise only and says nothing about quality",
                         same_seed, all)});
    }
}

/// Repeats against their order in the study: a trend inside configurations poses as an effect of whatever
/// was varied late.
void warn_of_drift(std::vector<Warning>& warnings, const Model& model) {
    double sxx = 0, sxy = 0, syy = 0, first = INFINITY, last = -INFINITY;
    int n = 0, groups = 0;
    for (const Configuration& configuration : model.configurations) {
        std::vector<double> x, y;
        for (const RunMetrics* run : configuration.runs) {
            if (run->position && run->epoch_time_s && *run->epoch_time_s > 0) {
                x.push_back(static_cast<double>(*run->position));
                y.push_back(std::log(*run->epoch_time_s));
            }
        }
        if (x.size() < 2) {
            continue;
        }
        const double mean_x = stats::summarise(x)->mean;
        const double mean_y = stats::summarise(y)->mean;
        for (std::size_t i = 0; i < x.size(); ++i) {
            sxx += (x[i] - mean_x) * (x[i] - mean_x);
            sxy += (x[i] - mean_x) * (y[i] - mean_y);
            syy += (y[i] - mean_y) * (y[i] - mean_y);
            first = std::min(first, x[i]);
            last = std::max(last, x[i]);
        }
        n += static_cast<int>(x.size());
        ++groups;
    }
    const int df = n - groups - 1;
    if (df < 4 || sxx <= 0) {
        return;
    }
    const double slope = sxy / sxx;
    const double variance = std::max(0.0, syy - slope * sxy) / df;
    const double change = std::expm1(slope * (last - first));
    if (std::abs(change) > 0.01 && stats::t_two_sided(slope / std::sqrt(variance / sxx), df) < 0.01) {
        warnings.push_back(
            {"drift", fmt::format("repeats of equal configurations change by {:+.1f} % from the first "
                                  "to the last run of the study: let devices warm up, or run in "
                                  "random order",
                                  100 * change)});
    }
}

/// Runs far from the median of their configuration, measured by the scatter of all repeats.
void warn_of_outliers(std::vector<Warning>& warnings, const Model& model) {
    struct Deviation {
        const RunMetrics* run;
        double value;
    };
    std::vector<Deviation> deviations;
    std::vector<double> magnitudes;
    for (const Configuration& configuration : model.configurations) {
        const auto times = configuration.values("epoch_time_s");
        if (times.size() < 3) {
            continue;
        }
        const double middle = stats::median(times);
        for (const RunMetrics* run : configuration.runs) {
            if (run->epoch_time_s) {
                deviations.push_back({run, *run->epoch_time_s / middle - 1});
                magnitudes.push_back(std::abs(deviations.back().value));
            }
        }
    }
    if (magnitudes.size() < 9) {
        return;
    }
    // 1.4826 makes the median absolute deviation a standard deviation; the least one keeps timer noise out.
    const double scale = std::max(1.4826 * stats::median(magnitudes), 0.004);
    for (const auto& [run, deviation] : deviations) {
        if (std::abs(deviation) > 5 * scale) {
            warnings.push_back(
                {"outlier", fmt::format("{}: its epochs took {:+.1f} % of their configuration's median, "
                                        "{:.0f} times the usual scatter; look at its trace before you "
                                        "drop it",
                                        run->run, 100 * deviation, std::abs(deviation) / scale)});
        }
    }
}

/// Caps that the GPUs never came near: the levels above are one and the same configuration.
void warn_of_idle_caps(std::vector<Warning>& warnings, const Model& model) {
    std::size_t idle = 0;
    std::string example;
    for (const Series& series : series_over(model.configurations, "power_cap_w")) {
        for (const Configuration* member : series.members) {
            if (member == series.members.back()) {
                continue;  // the highest cap is the reference
            }
            const double cap = *member->number("power_cap_w");
            double greatest = 0;
            for (const RunMetrics* run : member->runs) {
                greatest = std::max(greatest, run->max_gpu_power_w.value_or(cap));
            }
            if (greatest < 0.97 * cap) {
                if (idle++ == 0) {
                    example = fmt::format("{:.0f} W, where no GPU drew more than {:.0f} W", cap, greatest);
                }
            }
        }
    }
    if (idle > 0) {
        warnings.push_back(
            {"cap_without_effect",
             fmt::format("{} cap level{} never bound (first: {}): equal to no cap, "
                         "so {} no effect to fit",
                         idle, idle == 1 ? "" : "s", example, idle == 1 ? "it has" : "they have")});
    }
}

}  // namespace

std::vector<Warning> run_warnings(const RunMetrics& run) {
    std::vector<Warning> warnings;
    warn_of_status(warnings, run);
    warn_of_sensors(warnings, run);
    warn_of_heat(warnings, run);
    warn_of_billing(warnings, run);
    return warnings;
}

std::vector<Warning> study_warnings(const Model& model) {
    std::vector<Warning> warnings = collected(model.runs);
    warn_of_nature(warnings, model);
    warn_of_repeats(warnings, model);
    warn_of_drift(warnings, model);
    warn_of_outliers(warnings, model);
    warn_of_idle_caps(warnings, model);
    return warnings;
}

}  // namespace joulemark::analysis
