// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/baseline.h"
#include "analysis/factors.h"
#include "analysis/json_access.h"
#include "analysis/provenance.h"
#include "store/copies.h"
#include "store/summary.h"

namespace joulemark::analysis {
namespace {

using store::DeviceMetrics;
using store::HostInventory;
using store::HostRecord;
using store::RegionRecord;
using store::RegionSummary;
using store::RunRecord;
using store::WindowSum;

constexpr std::array field_table{
    MetricField{"wall_time_s", &RunMetrics::wall_time_s},
    MetricField{"training_speed_s", &RunMetrics::training_speed_s},
    MetricField{"epoch_time_s", &RunMetrics::epoch_time_s},
    MetricField{"samples_per_s", &RunMetrics::samples_per_s},
    MetricField{"energy_j", &RunMetrics::energy_j, true},
    MetricField{"epoch_energy_j", &RunMetrics::epoch_energy_j, true},
    MetricField{"energy_counter_j", &RunMetrics::energy_counter_j, true},
    MetricField{"energy_integrated_j", &RunMetrics::energy_integrated_j, true},
    MetricField{"energy_protocol_j", &RunMetrics::energy_protocol_j, true},
    MetricField{"joule_per_sample", &RunMetrics::joule_per_sample, true},
    MetricField{"joule_per_token", &RunMetrics::joule_per_token, true},
    MetricField{"samples_per_j", &RunMetrics::samples_per_j, true},
    MetricField{"gpu_hours", &RunMetrics::gpu_hours},
    MetricField{"energy_per_gpu_hour_kwh", &RunMetrics::energy_per_gpu_hour_kwh, true},
    MetricField{"mean_power_w", &RunMetrics::mean_power_w, true},
    MetricField{"samples_per_gpu_hour", &RunMetrics::samples_per_gpu_hour},
    MetricField{"updates_per_gpu_hour", &RunMetrics::updates_per_gpu_hour},
    MetricField{"co2e_g", &RunMetrics::co2e_g, true},
    MetricField{"cost", &RunMetrics::cost, true},
    MetricField{"gpu_memory_util_pct", &RunMetrics::gpu_memory_util_pct},
    MetricField{"gpu_memory_busy_pct", &RunMetrics::gpu_memory_busy_pct},
    MetricField{"gpu_busy_pct", &RunMetrics::gpu_busy_pct},
    MetricField{"sm_util_pct", &RunMetrics::sm_util_pct},
    MetricField{"throttled_pct", &RunMetrics::throttled_pct},
    MetricField{"sm_clock_mhz", &RunMetrics::sm_clock_mhz},
};

RegionMetrics region_metrics(const RegionRecord& region, const HostInventory& inventory) {
    WindowSum sum;
    sum.add(region, inventory);
    const auto [counter_j, integrated_j, protocol_j] = sum.side_by_side();
    return RegionMetrics{.host = region.host,
                         .name = region.name,
                         .index = region.index,
                         .start_ns = region.start_ns,
                         .end_ns = region.end_ns,
                         .open = region.open,
                         .simulated = sum.simulated(),
                         .samples = region.samples,
                         .updates = region.updates,
                         .tokens = region.tokens,
                         .loss = region.loss,
                         .energy_counter_j = counter_j,
                         .energy_integrated_j = integrated_j,
                         .energy_j = sum.energy_j(),
                         .energy_bound_j = sum.energy_bound_j(),
                         .mean_power_w = sum.uncertain() ? std::nullopt
                                                         : store::ratio(sum.energy_j(), region.duration_s()),
                         .gpu_memory_util_pct = sum.gpu_memory_util_pct(),
                         .gpu_busy_pct = sum.gpu_busy_pct(),
                         .sm_util_pct = sum.sm_util_pct(),
                         .profile = sum.profile(),
                         .method = fmt::format("{}", fmt::join(sum.methods(), " + "))};
}

/// The quality metric told last.
std::optional<Quality> last_quality(const RunRecord& record) {
    const RegionRecord* last = nullptr;
    for (const HostRecord& host : record.hosts) {
        for (const RegionRecord& region : host.regions) {
            const bool later = last == nullptr || last->host != region.host || region.end_ns >= last->end_ns;
            if (region.quality && later && (last == nullptr || last->host == region.host)) {
                last = &region;
            }
        }
    }
    return last == nullptr
               ? std::nullopt
               : std::optional(Quality{last->quality_name, last->quality_direction, *last->quality});
}

class Builder {
  public:
    explicit Builder(const RunRecord& record) : record_(record), summary_(store::summarise_run(record)) {
        static_cast<store::RunTotals&>(metrics_) = summary_;
        metrics_.run = record.run;
        metrics_.status = record.status;
        metrics_.factors = configuration_factors(record);
        metrics_.global_batch_stated = stated(record, "global_batch") && !stated(record, "local_batch");
        bool memory_known = true;
        for (const HostRecord& host : record.hosts) {
            metrics_.hosts.push_back(host.host);
            if (std::string origin = store::origin_of(host); !origin.empty()) {
                metrics_.origins.push_back(std::move(origin));
                metrics_.original = metrics_.original && text(host.run_json, "run") == record.run;
            }
            inventories_.emplace_back(host.run_json);
            identify(host);
            keep_warnings(host);
            metrics_.gpu_count += static_cast<double>(inventories_.back().gpus.size());
            memory_known = memory_known && add_memory(host);
        }
        if (!memory_known) {
            metrics_.host_memory_gb.reset();
        }
        static const nlohmann::json none = nlohmann::json::object();
        const nlohmann::json& tags =
            record.hosts.empty() ? none : child(record.hosts.front().run_json, "tags");
        for (const nlohmann::json* known : {&record.config, &record.factors, &tags}) {
            for (const char* name : {"seed", "train_seed"}) {
                if (metrics_.train_seed.empty() && known->contains(name)) {
                    metrics_.train_seed = (*known)[name].dump();
                }
            }
        }
        metrics_.missing_hosts = store::missing_hosts(record);
    }

    RunMetrics build() {
        if (metrics_.imported) {
            add_imported();
        } else {
            add_windows();
            add_epochs();
        }
        metrics_.quality = last_quality(record_);
        metrics_.provenance = run_provenance(record_, metrics_, command_);
        metrics_.estimated = metrics_.provenance["estimated"];
        return std::move(metrics_);
    }

  private:
    bool add_memory(const HostRecord& host) {
        const auto bytes = number(child(host.run_json, "hardware"), "memory_bytes");
        if (bytes) {
            metrics_.host_memory_gb = metrics_.host_memory_gb.value_or(0) + *bytes / 1e9;
        }
        return bytes.has_value();
    }

    void identify(const HostRecord& host) {
        const auto& run_json = host.run_json;
        metrics_.simulated = metrics_.simulated || child(run_json, "simulated") == true;
        const auto& anchor = child(run_json, "anchor");
        const auto& start = child(run_json, "start_ns");
        if (!metrics_.start_realtime_ns && start.is_number_integer() && anchor.is_object() &&
            child(anchor, "realtime_ns").is_number_integer() &&
            child(anchor, "monotonic_ns").is_number_integer()) {
            metrics_.start_realtime_ns = anchor["realtime_ns"].get<std::int64_t>() +
                                         start.get<std::int64_t>() -
                                         anchor["monotonic_ns"].get<std::int64_t>();
        }
        if (const auto study = run_json.find("study"); study != run_json.end() && study->is_object()) {
            metrics_.study = text(*study, "name");
            if (const auto position = study->find("position");
                position != study->end() && position->is_number()) {
                metrics_.position = position->get<std::int64_t>();
            }
        }
    }

    void warn(std::string code, std::string text) {
        metrics_.warnings.push_back({std::move(code), std::move(text)});
    }

    /// What the meter itself had to say, and controls that the driver did not set as asked.
    void keep_warnings(const HostRecord& host) {
        for (const nlohmann::json* file : {&host.run_json, host.end_json ? &*host.end_json : nullptr}) {
            if (file != nullptr) {
                for (const auto& sentence : child(*file, "warnings")) {
                    warn("meter", fmt::format("{}: {}", host.host, sentence.get<std::string>()));
                }
            }
        }
        for (const store::Warning& warning : host.warnings) {
            if (warning.code == "told_by_meter") {
                continue;  // said above
            }
            warn(warning.code, fmt::format("{}: {}", host.host, warning.text));
        }
        for (const auto& [control, devices] : child(host.run_json, "controls").items()) {
            for (const auto& [device, state] : devices.items()) {
                const auto requested = number(state, "requested");
                const auto enforced = number(state, "enforced");
                if (requested && enforced && std::abs(*requested - *enforced) > 0.01 * *requested) {
                    warn("control_not_enforced",
                         fmt::format("{} of {} on {} was asked to be {} and is {}", control, device,
                                     host.host, *requested, *enforced));
                }
            }
        }
    }

    void add_windows() {
        for (std::size_t i = 0; i < record_.hosts.size(); ++i) {
            for (const store::Attribution& a : record_.hosts[i].attributions) {
                metrics_.attributed.push_back(
                    {record_.hosts[i].host, a.device, a.name, a.regions, a.mean_duration_s, a.mean_energy_j,
                     a.mean_bound_j, a.idle_power_w, a.refresh_s, a.lag_s, a.window_s, a.calibrated});
            }
            for (const RegionRecord& region : record_.hosts[i].regions) {
                metrics_.regions.push_back(region_metrics(region, inventories_[i]));
                if (region.name == "joulemark.command") {
                    if (const auto energy = metrics_.regions.back().energy_j) {
                        metrics_.energy_by_node_j[region.host] = *energy;
                    }
                    add_coverage(region);
                    add_metered(record_.hosts[i], region);
                }
            }
        }
        if (summary_.command && summary_.command->on_all_hosts) {
            const auto [counter_j, integrated_j, protocol_j] = command_.side_by_side();
            metrics_.energy_counter_j = counter_j;
            metrics_.energy_integrated_j = integrated_j;
            metrics_.energy_protocol_j = protocol_j;
        }
        metrics_.energy_by_component_j = command_.by_component();
        metrics_.gpu_memory_util_pct = command_.gpu_memory_util_pct();
        metrics_.gpu_memory_busy_pct = command_.gpu_memory_busy_pct();
        metrics_.gpu_busy_pct = command_.gpu_busy_pct();
        metrics_.sm_util_pct = command_.sm_util_pct();
        metrics_.throttled_pct = command_.throttled_pct();
        metrics_.sm_clock_mhz = command_.sm_clock_mhz();
        metrics_.max_gpu_power_w = command_.max_gpu_power_w();
        metrics_.profile = command_.profile();
        metrics_.decimated_1hz_pct = command_.decimated_1hz_pct();
        metrics_.components = command_.contained();
        metrics_.simulated = metrics_.simulated || command_.simulated();
    }

    /// Simulated clocks all start at the same instant, so nothing tells which runs of theirs met.
    void add_metered(const HostRecord& host, const RegionRecord& window) {
        const std::string boot = text(host.run_json, "boot_id");
        if (boot.empty()) {
            return;
        }
        for (const auto& device : child(host.run_json, "devices")) {
            const std::string name = text(device, "device"), uuid = text(device, "uuid");
            const bool energy = std::ranges::any_of(window.devices, [&](const DeviceMetrics& metrics) {
                return metrics.device == name && metrics.energy_j && !metrics.simulated;
            });
            if (energy) {
                const std::string identity = boot + (uuid.empty() ? name : uuid);
                metrics_.metered.push_back(
                    {name, std::hash<std::string>{}(identity), window.start_ns, window.end_ns});
            }
        }
    }

    void add_coverage(const RegionRecord& window) {
        if (window.duration_s() <= 0) {
            return;
        }
        const auto covered_pct = [&](const DeviceMetrics& device) {
            return 100 * device.covered_s / window.duration_s();
        };
        std::map<std::string, const DeviceMetrics*> least;
        for (const DeviceMetrics& device : window.devices) {
            const DeviceMetrics*& known = least[device.component];
            if (known == nullptr || device.covered_s < known->covered_s) {
                known = &device;
            }
        }
        for (const DeviceMetrics& device : window.devices) {
            if (&device == least[device.component] || covered_pct(device) < store::wanted_coverage_pct) {
                metrics_.coverage.push_back(
                    {record_.run, window.host, device.component, device.device, covered_pct(device)});
            }
        }
    }

    void add_epochs() {
        const double warmup = number(metrics_.factors, "warmup_epochs").value_or(0);
        metrics_.baseline = baseline(record_, static_cast<std::int64_t>(warmup));
        const auto& epochs = summary_.timed_epochs;
        if (warmup == 0) {
            warn_of_slow_start(epochs);
        }
        if (epochs.empty() && metrics_.epochs > 0) {
            warn("no_epoch_after_warmup",
                 fmt::format(
                     "all {} epochs are warm-up (warmup_epochs {}), so there is no epoch time; train more "
                     "epochs",
                     metrics_.epochs, warmup));
        }
        if (std::ranges::any_of(epochs, [&](const RegionSummary& epoch) {
                return epoch.hosts < record_.hosts.size();
            })) {
            warn("epochs_on_some_hosts",
                 "epochs were marked on some hosts only, so their energy is not known; mark "
                 "them on a rank of every host");
        }
    }

    void warn_of_slow_start(const std::vector<RegionSummary>& epochs) {
        if (epochs.size() < 3) {
            return;
        }
        const double first = *epochs.front().wall_time_s;
        const double rest = (*metrics_.epoch_time_s * static_cast<double>(epochs.size()) - first) /
                            static_cast<double>(epochs.size() - 1);
        if (first > 1.1 * rest) {
            warn("slow_first_epoch",
                 fmt::format("the first epoch took {:.0f} % longer than the others and counts as "
                             "one of them; set warmup_epochs to 1",
                             100 * (first / rest - 1)));
        }
    }

    void add_imported() {
        metrics_.updates_per_gpu_hour =
            store::ratio(metrics_.samples_per_gpu_hour, number(metrics_.factors, "local_batch"));
        if (!number(metrics_.factors, "epochs") && !metrics_.epoch_time_s) {
            warn("epochs_not_given",
                 "the number of epochs is not given, so there is no time and no energy of one: import with "
                 "--set epochs=N");
        }
    }

    const RunRecord& record_;
    const store::RunSummary summary_;
    const WindowSum command_ = summary_.command ? summary_.command->sum : WindowSum();
    std::vector<HostInventory> inventories_;
    RunMetrics metrics_;
};

}  // namespace

std::span<const MetricField> metric_fields() {
    return field_table;
}

const MetricField& metric_field(std::string_view name) {
    return *std::ranges::find(field_table, name, &MetricField::name);
}

RunMetrics run_metrics(const RunRecord& record) {
    return Builder(record).build();
}

}  // namespace joulemark::analysis
