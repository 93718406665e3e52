// SPDX-License-Identifier: Apache-2.0
#include "store/summary.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/csv.h"
#include "core/run_format.h"
#include "core/units.h"
#include "store/host_digest.h"

namespace joulemark::store {
namespace {

std::vector<HostInventory> inventories(const RunRecord& run) {
    std::vector<HostInventory> of_hosts;
    for (const HostRecord& host : run.hosts) {
        of_hosts.emplace_back(host.run_json);
    }
    return of_hosts;
}

bool complete(const RunRecord& run) {
    return run.status != "incomplete" && missing_hosts(run).empty();
}

void add(RegionSummary& summary, const RegionRecord& region, const HostInventory& inventory) {
    summary.name = region.name;
    summary.index = region.index;
    ++summary.hosts;
    summary.open = summary.open || region.open;
    summary.wall_time_s = std::max(summary.wall_time_s.value_or(0), region.duration_s());
    accumulate(summary.samples, region.samples);
    accumulate(summary.updates, region.updates);
    accumulate(summary.tokens, region.tokens);
    const double weight = region.samples.value_or(0) > 0 ? *region.samples : 1;
    summary.loss.add(region.loss, weight);
    summary.quality.add(region.quality, weight);
    if (region.quality) {
        summary.quality_name = region.quality_name;
        summary.quality_direction = region.quality_direction;
    }
    summary.sum.add(region, inventory);
}

/// The energy, once all hosts are added.
void finish(RegionSummary& summary, const RunRecord& run, bool is_complete) {
    summary.gpus = summary.sum.gpus();
    summary.on_all_hosts = is_complete && summary.hosts == run.hosts.size();
    if (!summary.on_all_hosts) {
        summary.no_total = is_complete ? "not on every host" : "a host is missing";
    } else if (const auto partly = summary.sum.partly_measured(); !partly.empty()) {
        summary.no_total = fmt::format("partly measured: {}", fmt::join(partly, ", "));
    } else if ((summary.energy_j = summary.sum.energy_j())) {
        summary.no_total.clear();
        summary.energy_bound_j = summary.sum.energy_bound_j();
        auto components = summary.sum.contained();
        std::ranges::stable_partition(components, [](const std::string& name) { return name == "gpu"; });
        summary.energy_components = fmt::format("{}", fmt::join(components, "+"));
        summary.energy_method = fmt::format("{}", fmt::join(summary.sum.methods(), "+"));
        if (!summary.sum.uncertain()) {
            summary.mean_power_w = ratio(summary.energy_j, summary.wall_time_s);
            summary.joule_per_sample = ratio(summary.energy_j, summary.samples);
        }
    }
}

/// By name and index.
using Regions = std::map<std::pair<std::string, std::int64_t>, RegionSummary>;

template <typename Wanted>
Regions add_up(const RunRecord& run, const std::vector<HostInventory>& inventories, Wanted wanted) {
    Regions regions;
    for (std::size_t i = 0; i < run.hosts.size(); ++i) {
        for (const RegionRecord& region : run.hosts[i].regions) {
            if (wanted(region.name)) {
                add(regions[{region.name, region.index}], region, inventories[i]);
            }
        }
    }
    const bool is_complete = complete(run);
    for (auto& [key, region] : regions) {
        finish(region, run, is_complete);
    }
    return regions;
}

void finish_ratios(RunTotals& totals) {
    if (totals.energy_uncertain) {  // a lower bound over the whole time is no rate
        for (const auto rate : {&RunTotals::mean_power_w, &RunTotals::epoch_energy_j,
                                &RunTotals::joule_per_sample, &RunTotals::joule_per_token}) {
            (totals.*rate).reset();
        }
    } else if (totals.energy_j) {
        totals.energy_per_gpu_hour_kwh = ratio(kwh(*totals.energy_j), totals.gpu_hours);
    }
    totals.samples_per_j = ratio(1.0, totals.joule_per_sample);
}

Value times(const Value& a, const Value& b) {
    return a && b ? Value(*a * *b) : std::nullopt;
}

RunSummary summarise_measured(const RunRecord& run) {
    RunSummary summary;
    const auto of_hosts = inventories(run);
    const double warmup = number(run.factors, "warmup_epochs").value_or(0);
    for (auto& [key, region] : add_up(run, of_hosts, [](const std::string& name) {
             return name == run_format::command_region || name == "epoch";
         })) {
        if (region.name == run_format::command_region) {
            summary.command = std::move(region);
        } else if (!region.open) {
            ++summary.epochs;  // warm-up ones count for training_speed_s only
            if (static_cast<double>(region.index) >= warmup) {
                summary.timed_epochs.push_back(std::move(region));
            }
        }
    }
    if (summary.command) {
        summary.wall_time_s = summary.command->wall_time_s;
        summary.energy_j = summary.command->energy_j;
        summary.mean_power_w = summary.command->mean_power_w;
        summary.energy_uncertain = summary.energy_j && summary.command->sum.uncertain();
    }
    summary.epochs_timed = summary.timed_epochs.size();
    Value time_s, samples, updates, tokens, energy_j = 0;
    for (const RegionSummary& epoch : summary.timed_epochs) {
        accumulate(time_s, epoch.wall_time_s);
        accumulate(samples, epoch.samples);
        accumulate(updates, epoch.updates);
        accumulate(tokens, epoch.tokens);
        energy_j = energy_j && epoch.energy_j ? Value(*energy_j + *epoch.energy_j) : std::nullopt;
    }
    const auto timed = static_cast<double>(summary.epochs_timed);
    summary.epoch_time_s = ratio(time_s, timed);
    summary.samples_per_s = ratio(samples, time_s);
    summary.epoch_energy_j = ratio(energy_j, timed);
    summary.joule_per_sample = ratio(energy_j, samples);
    summary.joule_per_token = ratio(energy_j, tokens);
    if (run.status == "ok") {
        summary.training_speed_s =
            ratio(summary.wall_time_s, summary.epochs > 0 ? Value(static_cast<double>(summary.epochs))
                                                          : number(run.factors, "epochs"));
    }
    double metered = 0;
    for (const HostInventory& inventory : of_hosts) {
        metered += static_cast<double>(inventory.gpus.size());
    }
    if (const double gpus = number(run.factors, "gpus").value_or(metered); metered > 0 && gpus > 0) {
        if (complete(run)) {
            summary.gpu_hours = times(gpus / 3600, summary.wall_time_s);
        }
        summary.samples_per_gpu_hour = times(summary.samples_per_s, 3600 / gpus);
        summary.updates_per_gpu_hour = ratio(updates, times(gpus / 3600, time_s));
    }
    finish_ratios(summary);
    if (summary.command) {
        summary.command->joule_per_sample = summary.joule_per_sample;
    }
    return summary;
}

/// What is given stays, what follows from it is filled in.
RunSummary summarise_imported(const RunRecord& run) {
    RunSummary summary;
    summary.imported = true;
    static const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json& run_json = run.hosts.front().run_json;
    const nlohmann::json& row = run_json.contains("imported") ? run_json["imported"] : none;
    const nlohmann::json& given = row.contains("metrics") ? row["metrics"] : none;
    for (const auto& [name, value] :
         {std::pair("wall_time_s", &RunTotals::wall_time_s),
          std::pair("epoch_time_s", &RunTotals::epoch_time_s), std::pair("gpu_hours", &RunTotals::gpu_hours),
          std::pair("energy_j", &RunTotals::energy_j), std::pair("mean_power_w", &RunTotals::mean_power_w)}) {
        summary.*value = json_number(given, name);
    }
    RunTotals& t = summary;
    auto epochs = number(run.factors, "epochs");
    t.epochs = static_cast<std::size_t>(epochs.value_or(0));
    if (!epochs && t.epoch_time_s && !t.wall_time_s && !t.gpu_hours) {
        epochs = 1;  // the row is of an epoch
    }
    const auto gpus = number(run.factors, "gpus"), samples = number(run.factors, "dataset_samples");
    const auto fill = [](Value& value, const Value& from) { value = value ? value : from; };
    fill(t.wall_time_s, ratio(times(t.gpu_hours, 3600), gpus));
    fill(t.epoch_time_s, ratio(t.wall_time_s, epochs));
    fill(t.wall_time_s, times(t.epoch_time_s, epochs));
    t.training_speed_s = ratio(t.wall_time_s, epochs);
    fill(t.gpu_hours, times(gpus, ratio(t.wall_time_s, 3600)));
    fill(t.energy_j, times(t.mean_power_w, t.wall_time_s));
    fill(t.mean_power_w, ratio(t.energy_j, t.wall_time_s));
    t.epoch_energy_j = ratio(t.energy_j, epochs);
    t.samples_per_s = ratio(samples, t.epoch_time_s);
    t.joule_per_sample = ratio(t.epoch_energy_j, samples);
    t.samples_per_gpu_hour = ratio(times(t.samples_per_s, 3600), gpus);
    finish_ratios(t);

    RegionSummary& command = summary.command.emplace();
    command.name = run_format::command_region;
    command.hosts = run.hosts.size();
    command.gpus = static_cast<std::size_t>(gpus.value_or(0));
    command.wall_time_s = t.wall_time_s;
    command.energy_j = t.energy_j;
    command.mean_power_w = t.mean_power_w;
    command.joule_per_sample = t.joule_per_sample;
    if (t.energy_j) {
        command.energy_components = "as given";
        command.energy_method = "imported";
        command.no_total.clear();
    }
    return summary;
}

}  // namespace

RunSummary summarise_run(const RunRecord& run) {
    const bool imported = std::ranges::any_of(
        run.hosts, [](const HostRecord& host) { return host.run_json.contains("imported"); });
    return imported ? summarise_imported(run) : summarise_measured(run);
}

std::vector<RegionSummary> summarise_regions(const RunRecord& run) {
    // Since the host's own first region: clocks of hosts are not compared.
    std::map<Regions::key_type, double> begin_s;
    for (const HostRecord& host : run.hosts) {
        for (const RegionRecord& region : host.regions) {
            begin_s.try_emplace({region.name, region.index},
                                seconds(region.start_ns - host.regions.front().start_ns));
        }
    }
    std::vector<RegionSummary> summaries;
    for (auto& [key, region] : add_up(run, inventories(run), [](const std::string&) { return true; })) {
        summaries.push_back(std::move(region));
    }
    std::ranges::stable_sort(summaries, {}, [&](const RegionSummary& region) {
        return std::pair(region.name != run_format::command_region, begin_s.at({region.name, region.index}));
    });
    return summaries;
}

std::vector<std::string> missing_hosts(const RunRecord& run) {
    std::vector<std::string> missing;
    std::ranges::remove_copy_if(run.expected_hosts, std::back_inserter(missing), [&](const std::string& host) {
        return std::ranges::find(run.hosts, host, &HostRecord::host) != run.hosts.end();
    });
    return missing;
}

Value number(const nlohmann::json& factors, std::string_view name) {
    const auto found = factors.find(std::string(name));
    if (found == factors.end()) {
        return std::nullopt;
    }
    if (found->is_number()) {
        return found->get<double>();
    }
    return found->is_string() ? csv::number(found->get_ref<const std::string&>()) : std::nullopt;
}

std::string factor_text(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string factors_text(const nlohmann::json& factors) {
    std::string text;
    for (const auto& [key, value] : factors.items()) {
        text += (text.empty() ? "" : " ") + key + "=" + factor_text(value);
    }
    return text;
}

}  // namespace joulemark::store
