// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "analysis/baseline.h"
#include "analysis/factors.h"
#include "analysis/json_access.h"
#include "analysis/provenance.h"
#include "analysis/window.h"
#include "core/units.h"
#include "store/copies.h"

namespace joulemark::analysis {
namespace {

using store::DeviceMetrics;
using store::HostRecord;
using store::RegionRecord;
using store::RunRecord;

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

/// Of the energy, when samples are missing.
constexpr double tolerated_bound = 0.1;

/// One epoch over all hosts: as long as on the slowest, energies and counts added.
struct Epoch {
    double duration_s = 0;
    Value samples, updates, tokens;
    WindowSum sum;
    std::size_t hosts = 0;
};

void accumulate(Value& total, const Value& value) {
    if (value) {
        total = total.value_or(0) + *value;
    }
}

Value ratio(const Value& numerator, const Value& denominator) {
    return numerator && denominator && *denominator > 0 ? Value(*numerator / *denominator) : std::nullopt;
}

/// The samples of energy leave out part of the window.
bool has_gaps(const RegionRecord& region) {
    return std::ranges::any_of(region.devices, [&](const DeviceMetrics& device) {
        return device.energy_j && 100 * device.covered_s < wanted_coverage_pct * region.duration_s();
    });
}

bool is_uncertain(const WindowSum& sum) {
    const Value energy = sum.energy_j(), bound = sum.energy_bound_j();
    return energy && bound && *bound > tolerated_bound * *energy;
}

RegionMetrics region_metrics(const RegionRecord& region, const WindowSum& sum) {
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
                         .energy_counter_j = sum.energy_counter_j(),
                         .energy_integrated_j = sum.energy_integrated_j(),
                         .energy_j = sum.energy_j(),
                         .energy_bound_j = sum.energy_bound_j(),
                         .mean_power_w = has_gaps(region) && is_uncertain(sum)
                                             ? std::nullopt
                                             : ratio(sum.energy_j(), region.duration_s()),
                         .gpu_memory_util_pct = sum.gpu_memory_util_pct(),
                         .gpu_busy_pct = sum.gpu_busy_pct(),
                         .sm_util_pct = sum.sm_util_pct(),
                         .profile = sum.profile(),
                         .method = sum.method()};
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
    explicit Builder(const RunRecord& record) : record_(record) {
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
        for (const std::string& host : record.expected_hosts) {
            if (std::ranges::find(metrics_.hosts, host) == metrics_.hosts.end()) {
                metrics_.missing_hosts.push_back(host);
            }
        }
    }

    RunMetrics build() {
        add_windows();
        add_epochs();
        add_derived();
        add_imported();
        metrics_.quality = last_quality(record_);
        metrics_.energy_uncertain = energy_uncertain();
        if (metrics_.energy_uncertain) {  // a lower bound over the whole time is no rate
            for (const auto rate : {&RunMetrics::mean_power_w, &RunMetrics::energy_per_gpu_hour_kwh,
                                    &RunMetrics::epoch_energy_j, &RunMetrics::joule_per_sample,
                                    &RunMetrics::joule_per_token, &RunMetrics::samples_per_j}) {
                (metrics_.*rate).reset();
            }
        }
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
        metrics_.imported = metrics_.imported || run_json.contains("imported");
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

    bool complete() const { return metrics_.missing_hosts.empty() && metrics_.status != "incomplete"; }

    void add_windows() {
        if (metrics_.imported) {
            return;  // a row of a table has no window
        }
        for (std::size_t i = 0; i < record_.hosts.size(); ++i) {
            for (const store::Attribution& a : record_.hosts[i].attributions) {
                metrics_.attributed.push_back(
                    {record_.hosts[i].host, a.device, a.name, a.regions, a.mean_duration_s, a.mean_energy_j,
                     a.mean_bound_j, a.idle_power_w, a.refresh_s, a.lag_s, a.window_s, a.calibrated});
            }
            for (const RegionRecord& region : record_.hosts[i].regions) {
                WindowSum sum;
                sum.add(region.devices, inventories_[i]);
                metrics_.regions.push_back(region_metrics(region, sum));
                if (region.name == "joulemark.command") {
                    add_command(record_.hosts[i], region, sum);
                } else if (region.name == "epoch" && !region.open) {
                    add_epoch(region, sum);
                }
            }
        }
        if (complete() && windows_ == record_.hosts.size()) {
            metrics_.energy_j = command_.energy_j();
            metrics_.energy_counter_j = command_.energy_counter_j();
            metrics_.energy_integrated_j = command_.energy_integrated_j();
            metrics_.energy_protocol_j = command_.energy_protocol_j();
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

    void add_command(const HostRecord& host, const RegionRecord& window, const WindowSum& sum) {
        ++windows_;
        add_metered(host, window);
        metrics_.wall_time_s = std::max(metrics_.wall_time_s.value_or(0), window.duration_s());
        command_.add(sum);
        if (const auto energy = sum.energy_j()) {
            metrics_.energy_by_node_j[window.host] = *energy;
        }
        add_coverage(window);
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

    /// With samples missing and a bound that lets the truth be far off. A short run's bound may be wide too,
    /// but its error scatters as its repeats do; that of a gap has one sign.
    bool energy_uncertain() const {
        const bool gaps = std::ranges::any_of(metrics_.coverage, [&](const Coverage& coverage) {
            return coverage.covered_pct < wanted_coverage_pct &&
                   std::ranges::count(metrics_.components, coverage.component) > 0;
        });
        return gaps && metrics_.energy_j && is_uncertain(command_);
    }

    void add_epoch(const RegionRecord& region, const WindowSum& sum) {
        Epoch& epoch = epochs_[region.index];
        epoch.duration_s = std::max(epoch.duration_s, region.duration_s());
        accumulate(epoch.samples, region.samples);
        accumulate(epoch.updates, region.updates);
        accumulate(epoch.tokens, region.tokens);
        epoch.sum.add(sum);
        ++epoch.hosts;
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
            if (&device == least[device.component] || covered_pct(device) < wanted_coverage_pct) {
                metrics_.coverage.push_back(
                    {record_.run, window.host, device.component, device.device, covered_pct(device)});
            }
        }
    }

    /// Closed epochs by index; warm-up ones count for training_speed_s only.
    void add_epochs() {
        auto& epochs = epochs_;
        const auto stated_epochs = number(metrics_.factors, "epochs");
        metrics_.epochs = epochs.size();
        if (metrics_.status == "ok" && (!epochs.empty() || stated_epochs)) {
            const double count = epochs.empty() ? *stated_epochs : static_cast<double>(epochs.size());
            metrics_.training_speed_s = ratio(metrics_.wall_time_s, count);
        }
        const double warmup = number(metrics_.factors, "warmup_epochs").value_or(0);
        metrics_.baseline = baseline(record_, static_cast<std::int64_t>(warmup));
        if (warmup == 0) {
            warn_of_slow_start(epochs);
        }
        std::erase_if(epochs, [&](const auto& entry) { return static_cast<double>(entry.first) < warmup; });
        metrics_.epochs_timed = epochs.size();
        if (!epochs.empty()) {
            average(epochs);
        } else if (metrics_.epochs > 0) {
            warn("no_epoch_after_warmup",
                 fmt::format(
                     "all {} epochs are warm-up (warmup_epochs {}), so there is no epoch time; train more "
                     "epochs",
                     metrics_.epochs, warmup));
        }
    }

    void warn_of_slow_start(const std::map<std::int64_t, Epoch>& epochs) {
        if (epochs.size() < 3) {
            return;
        }
        double rest = 0;
        for (auto epoch = std::next(epochs.begin()); epoch != epochs.end(); ++epoch) {
            rest += epoch->second.duration_s / static_cast<double>(epochs.size() - 1);
        }
        const double first = epochs.begin()->second.duration_s;
        if (first > 1.1 * rest) {
            warn("slow_first_epoch",
                 fmt::format("the first epoch took {:.0f} % longer than the others and counts as "
                             "one of them; set warmup_epochs to 1",
                             100 * (first / rest - 1)));
        }
    }

    void average(const std::map<std::int64_t, Epoch>& epochs) {
        double duration = 0, energy = 0;
        Value samples, tokens;
        bool metered = complete();
        bool everywhere = true;
        for (const auto& [index, epoch] : epochs) {
            duration += epoch.duration_s;
            accumulate(samples, epoch.samples);
            accumulate(updates_, epoch.updates);
            accumulate(tokens, epoch.tokens);
            const Value joules = epoch.sum.energy_j();
            everywhere = everywhere && epoch.hosts == record_.hosts.size();
            metered = metered && everywhere && joules;
            energy += joules.value_or(0);
        }
        if (!everywhere) {
            warn("epochs_on_some_hosts",
                 "epochs were marked on some hosts only, so their energy is not known; mark "
                 "them on a rank of every host");
        }
        const auto count = static_cast<double>(epochs.size());
        timed_s_ = duration;
        metrics_.epoch_time_s = duration / count;
        metrics_.samples_per_s = ratio(samples, duration);
        if (metered) {
            metrics_.epoch_energy_j = energy / count;
            metrics_.joule_per_sample = ratio(energy, samples);
            metrics_.joule_per_token = ratio(energy, tokens);
        }
    }

    void add_derived() {
        const auto gpus = number(metrics_.factors, "gpus");
        bool has_gpu = metrics_.imported;
        for (const HostInventory& inventory : inventories_) {
            has_gpu = has_gpu || !inventory.gpus.empty();
        }
        metrics_.mean_power_w = ratio(metrics_.energy_j, metrics_.wall_time_s);
        if (gpus && has_gpu && *gpus > 0) {
            if (metrics_.wall_time_s && complete()) {
                metrics_.gpu_hours = *gpus * *metrics_.wall_time_s / 3600;
            }
            if (metrics_.samples_per_s) {
                metrics_.samples_per_gpu_hour = *metrics_.samples_per_s * 3600 / *gpus;
            }
            metrics_.updates_per_gpu_hour = ratio(updates_, *gpus * timed_s_ / 3600);
        }
        finish_ratios();
    }

    void finish_ratios() {
        if (metrics_.energy_j && metrics_.gpu_hours && *metrics_.gpu_hours > 0) {
            metrics_.energy_per_gpu_hour_kwh = kwh(*metrics_.energy_j) / *metrics_.gpu_hours;
        }
        metrics_.samples_per_j = ratio(1.0, metrics_.joule_per_sample);
    }

    /// Rows of other tools' tables have results but no samples; what follows from them is worked out.
    void add_imported() {
        if (!metrics_.imported) {
            return;
        }
        const nlohmann::json& given = child(child(record_.hosts.front().run_json, "imported"), "metrics");
        for (const MetricField& field : field_table) {
            if (const auto value = number(given, field.name)) {
                metrics_.*field.value = *value;
            }
        }
        RunMetrics& m = metrics_;
        auto epochs = number(m.factors, "epochs");
        m.epochs = static_cast<std::size_t>(epochs.value_or(0));
        if (!epochs && m.epoch_time_s && !m.wall_time_s && !m.gpu_hours) {
            epochs = 1;  // the row is of an epoch
        }
        const auto gpus = number(m.factors, "gpus");
        const auto fill = [](Value& value, const Value& from) { value = value ? value : from; };
        const auto times = [](const Value& a, const Value& b) {
            return a && b ? Value(*a * *b) : std::nullopt;
        };
        if (m.gpu_hours && gpus) {
            fill(m.wall_time_s, *m.gpu_hours * 3600 / *gpus);
        }
        fill(m.epoch_time_s, ratio(m.wall_time_s, epochs));
        fill(m.wall_time_s, times(m.epoch_time_s, epochs));
        fill(m.training_speed_s, ratio(m.wall_time_s, epochs));
        if (gpus && m.wall_time_s) {
            fill(m.gpu_hours, *gpus * *m.wall_time_s / 3600);
        }
        fill(m.energy_j, times(m.mean_power_w, m.wall_time_s));
        fill(m.mean_power_w, ratio(m.energy_j, m.wall_time_s));
        fill(m.epoch_energy_j, ratio(m.energy_j, epochs));
        if (!epochs && !m.epoch_time_s) {
            warn("epochs_not_given",
                 "the number of epochs is not given, so there is no time and no energy of one: import with "
                 "--set epochs=N");
        }
        const auto samples = number(m.factors, "dataset_samples");
        fill(m.samples_per_s, ratio(samples, m.epoch_time_s));
        fill(m.joule_per_sample, ratio(m.epoch_energy_j, samples));
        if (m.samples_per_s && gpus) {
            fill(m.samples_per_gpu_hour, *m.samples_per_s * 3600 / *gpus);
        }
        if (const auto local = number(m.factors, "local_batch"); local && m.samples_per_gpu_hour) {
            fill(m.updates_per_gpu_hour, *m.samples_per_gpu_hour / *local);
        }
        finish_ratios();
    }

    const RunRecord& record_;
    std::vector<HostInventory> inventories_;
    RunMetrics metrics_;
    WindowSum command_;
    std::map<std::int64_t, Epoch> epochs_;  ///< closed ones, by index
    std::size_t windows_ = 0;
    Value updates_;
    double timed_s_ = 0;
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
