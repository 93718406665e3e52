// SPDX-License-Identifier: Apache-2.0
#include "sensors/nvml_backend.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "sensors/counter.h"

namespace joulemark::sensors {
namespace {

using nvml::Reading;
namespace api = nvml::api;

constexpr std::string_view sampling_note =
    "A100 and H100 look at their power only about a quarter of the time (Yang et al., SC24): periodic load "
    "can mislead";
constexpr std::string_view accuracy_note =
    "NVIDIA documents 5 % for its older GPUs and nothing for newer ones; Yang et al. (SC24) find the same "
    "size";

Reading<double> share(const Reading<api::Utilization>& reading, unsigned api::Utilization::*part) {
    return {reading.status, static_cast<double>(reading.value.*part)};
}

/// Every quick metric: a row. Order is the order of the columns.
struct Quick {
    Metric metric;
    const char* call;
    Reading<double> (*read)(const nvml::Device&);
};
constexpr std::array quick_metrics{
    Quick{Metric::gpu_power_w, "nvmlDeviceGetPowerUsage",
          [](const nvml::Device& gpu) { return gpu.power_w(); }},
    Quick{Metric::gpu_power_instant_w, "field POWER_INSTANT",
          [](const nvml::Device& gpu) { return gpu.power_instant_w(); }},
    Quick{Metric::gpu_power_average_w, "field POWER_AVERAGE",
          [](const nvml::Device& gpu) { return gpu.power_average_w(); }},
    Quick{Metric::gpu_memory_power_w, "field POWER_INSTANT of the memory",
          [](const nvml::Device& gpu) { return gpu.memory_power_w(); }},
    Quick{Metric::gpu_module_power_w, "field POWER_INSTANT of the module",
          [](const nvml::Device& gpu) { return gpu.module_power_w(); }},
    Quick{Metric::gpu_busy_pct, "nvmlDeviceGetUtilizationRates",
          [](const nvml::Device& gpu) { return share(gpu.utilization(), &api::Utilization::gpu); }},
    Quick{Metric::gpu_memory_busy_pct, "nvmlDeviceGetUtilizationRates",
          [](const nvml::Device& gpu) { return share(gpu.utilization(), &api::Utilization::memory); }},
    Quick{Metric::gpu_memory_used_bytes, "nvmlDeviceGetMemoryInfo",
          [](const nvml::Device& gpu) {
              const auto memory = gpu.memory();
              return Reading<double>{memory.status, static_cast<double>(memory.value.used)};
          }},
    Quick{Metric::gpu_sm_clock_mhz, "nvmlDeviceGetClockInfo",
          [](const nvml::Device& gpu) { return gpu.sm_clock_mhz(); }},
    Quick{Metric::gpu_memory_clock_mhz, "nvmlDeviceGetClockInfo",
          [](const nvml::Device& gpu) { return gpu.memory_clock_mhz(); }},
    Quick{Metric::gpu_temperature_c, "nvmlDeviceGetTemperature",
          [](const nvml::Device& gpu) { return gpu.temperature_c(); }},
    Quick{Metric::gpu_power_limit_w, "nvmlDeviceGetEnforcedPowerLimit",
          [](const nvml::Device& gpu) { return gpu.power_limit_enforced_w(); }},
    Quick{Metric::gpu_throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",
          [](const nvml::Device& gpu) {
              const auto mask = gpu.throttle_reasons();
              return Reading<double>{mask.status, static_cast<double>(mask.value)};
          }},
};

class QuickSource final : public Source {
  public:
    QuickSource(SourceInfo info, nvml::Device gpu, std::vector<const Quick*> rows)
        : Source(std::move(info)), gpu_(gpu), rows_(std::move(rows)) {}

    void read(std::span<double> values) noexcept override {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const Reading<double> reading = rows_[i]->read(gpu_);
            values[i] = reading ? reading.value : gap;
        }
    }

  private:
    nvml::Device gpu_;
    std::vector<const Quick*> rows_;
};

class EnergySource final : public Source {
  public:
    EnergySource(SourceInfo info, nvml::Device gpu, CounterModel model, std::shared_ptr<const Clock> clock)
        : Source(std::move(info)), gpu_(gpu), counter_(model), clock_(std::move(clock)) {}

    void read(std::span<double> values) noexcept override {
        const auto power = gpu_.power_w();
        const auto energy = gpu_.energy_mj();
        values[0] = counter_.update(clock_->now_ns(), energy.optional(), power ? power.value : gap);
        // Beside the counter because they too change seldom and may take long to read.
        for (std::size_t i = 1; i < info().metrics.size(); ++i) {
            const auto errors =
                gpu_.ecc_errors(info().metrics[i] == Metric::gpu_ecc_corrected_errors ? api::ecc_corrected
                                                                                      : api::ecc_uncorrected);
            values[i] = errors ? errors.value : gap;
        }
    }
    CounterEvents events() const override { return counter_.events(); }

  private:
    nvml::Device gpu_;
    Counter counter_;
    std::shared_ptr<const Clock> clock_;
};

std::string gpu_id(int index) {
    return fmt::format("gpu{}", index);
}

Device describe(const nvml::Device& gpu, bool simulated) {
    Device device{.id = gpu_id(gpu.index()), .file = File::gpu, .name = gpu.name().value, .component = "gpu"};
    device.index = gpu.index();
    device.uuid = gpu.uuid().value;
    device.pci_bus_id = gpu.pci_bus_id().value;
    if (const auto memory = gpu.memory()) {
        device.memory_bytes = memory.value.total;
    }
    device.power_limit_w = gpu.power_limit_enforced_w().optional();
    if (const auto range = gpu.power_limit_range_w()) {
        device.power_limit_min_w = range.value.first;
        device.power_limit_max_w = range.value.second;
    }
    device.sm_clock_max_mhz = gpu.sm_clock_max_mhz().optional();
    device.simulated = simulated;
    return device;
}

GpuIdentity identify(const nvml::Device& gpu) {
    return {.index = gpu.index(),
            .name = gpu.name().value,
            .uuid = gpu.uuid().value,
            .pci_bus_id = gpu.pci_bus_id().value,
            .minor = gpu.minor_number().optional(),
            .mig_uuids = gpu.mig_uuids().value};
}

/// Adds one GPU. `remark` is appended to every reason.
class GpuDiscovery {
  public:
    GpuDiscovery(Discovery& discovery, const nvml::Device& gpu, bool simulated, std::string remark)
        : discovery_(discovery),
          gpu_(gpu),
          device_(describe(gpu, simulated)),
          architecture_(gpu.architecture().value),
          meaning_(power_meaning(device_.name, architecture_)),
          remark_(std::move(remark)) {}

    void run() {
        discovery_.add(device_);
        if (gpu_.mig_enabled().value) {
            remark_ += "; MIG: the whole board's, shared by all its slices";
            discovery_.machine.warnings.push_back(fmt::format(
                "{} is split by MIG: power and energy are the whole board's, whoever uses its other slices",
                device_.id));
        }
        if (const auto processes = gpu_.compute_processes(); processes && processes.value > 0) {
            remark_ += "; shared with other processes";
            discovery_.machine.warnings.push_back(fmt::format(
                "{} is shared: {} process{} computed on it already, and its power and energy contain theirs",
                device_.id, processes.value, processes.value == 1 ? "" : "es"));
        }
        add_quick();
        add_energy();
        add_nvml_gpm(discovery_, gpu_, architecture_, device_.simulated);
    }

  private:
    SourceInfo info(std::string name, std::string method) const {
        SourceInfo info;
        info.name = std::move(name);
        info.device = device_.id;
        info.method = device_.simulated ? "simulated" : std::move(method);
        info.scope = "gpu board";
        info.accuracy_note =
            device_.simulated ? "simulated, exact but for the noise asked for" : accuracy_note;
        if (!device_.simulated) {
            info.accuracy_pct = 5;
        }
        if (architecture_ >= api::architecture_ampere) {
            info.native_period_s = 0.1;
        }
        return info;
    }

    void add_quick() {
        SourceInfo quick = info("nvml", "sampled");
        quick.origin = "NVML";
        std::vector<const Quick*> rows;
        for (const Quick& row : quick_metrics) {
            if (superfluous(row.metric)) {
                continue;
            }
            if (const auto reading = row.read(gpu_)) {
                quick.metrics.push_back(row.metric);
                rows.push_back(&row);
            } else {
                refuse(row, nvml::explain(reading.status));
            }
        }
        if (!rows.empty()) {
            discovery_.use(std::make_unique<QuickSource>(std::move(quick), gpu_, std::move(rows)),
                           [this](Metric metric) { return reason(metric) + remark_; });
        }
    }

    bool superfluous(Metric metric) const {
        return (metric == Metric::gpu_power_average_w &&
                meaning_.default_is_average) ||  // the default reading is it
               (metric == Metric::gpu_module_power_w && !meaning_.module_counter);  // the board is the module
    }

    void refuse(const Quick& row, const Failure& failure) {
        discovery_.unavailable("nvml " + device_.id, quantity(row.metric), "gpu board",
                               {fmt::format("{}: {}", row.call, failure.reason), failure.remedy});
    }

    std::string reason(Metric metric) const {
        switch (metric) {
            case Metric::gpu_power_w:
                return meaning_.usage;
            case Metric::gpu_power_instant_w:
                return "field POWER_INSTANT: the freshest value of the sensor";
            case Metric::gpu_memory_power_w:
                return "field POWER_INSTANT of the memory, contained in the board's power";
            case Metric::gpu_module_power_w:
                return "field POWER_INSTANT of the module: GPU, Grace CPU and memory";
            case Metric::gpu_power_average_w:
                return "field POWER_AVERAGE: a mean over 1 s";
            default:
                return std::ranges::find(quick_metrics, metric, &Quick::metric)->call;
        }
    }

    void add_energy() {
        const std::string name = "nvml.energy";
        const std::string scope = meaning_.module_counter ? "gpu module" : "gpu board";
        if (const auto energy = gpu_.energy_mj(); !energy) {
            const Failure failure = nvml::explain(energy.status);
            discovery_.unavailable(
                fmt::format("{} {}", name, device_.id), "energy", scope,
                {fmt::format("no energy counter: {}; energy is the integral of the sampled power instead",
                             failure.reason),
                 failure.remedy});
            return;
        }
        SourceInfo energy = info(name, "counter");
        energy.metrics = {Metric::gpu_energy_j};
        for (const auto& [metric, type] :
             {std::pair(Metric::gpu_ecc_corrected_errors, api::ecc_corrected),
              std::pair(Metric::gpu_ecc_uncorrected_errors, api::ecc_uncorrected)}) {
            if (const auto errors = gpu_.ecc_errors(type)) {
                energy.metrics.push_back(metric);
            } else {
                const Failure failure = nvml::explain(errors.status);
                discovery_.unavailable(
                    fmt::format("{} {}", name, device_.id), quantity(metric), "gpu board",
                    {fmt::format("nvmlDeviceGetTotalEccErrors: {}", failure.reason), failure.remedy});
            }
        }
        energy.scope = scope;
        energy.origin = "nvmlDeviceGetTotalEnergyConsumption";
        energy.slow = true;
        // Boards overshoot their limit for milliseconds; four times it is beyond any.
        const double limit_w = device_.power_limit_max_w.value_or(device_.power_limit_w.value_or(1000));
        const CounterModel model{.units_per_joule = 1000, .max_power_w = std::max(4 * limit_w, 1000.0)};
        discovery_.use(
            std::make_unique<EnergySource>(std::move(energy), gpu_, model, discovery_.machine.clock),
            [this](Metric metric) {
                return (metric != Metric::gpu_energy_j
                            ? "nvmlDeviceGetTotalEccErrors, since the driver was loaded"
                        : meaning_.module_counter
                            ? "counter of the module: Grace CPU and its memory are contained in it"
                            : "energy counter of the board, preferred to integrating power") +
                       remark_;
            });
    }

    Discovery& discovery_;
    nvml::Device gpu_;
    Device device_;
    unsigned architecture_;
    PowerMeaning meaning_;
    std::string remark_;
};

}  // namespace

PowerMeaning power_meaning(const std::string& name, unsigned architecture) {
    const auto named = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
    const bool ga100 =
        architecture == api::architecture_ampere && (named("A100") || named("A800") || named("A30"));
    PowerMeaning meaning;
    meaning.module_counter = named("GH200") || named("Grace");
    meaning.default_is_average = architecture >= api::architecture_ampere && !ga100;
    meaning.usage = meaning.default_is_average
                        ? "nvmlDeviceGetPowerUsage: a mean over 1 s on this generation, so it lags the load"
                        : "nvmlDeviceGetPowerUsage: a momentary value on this generation";
    if (ga100 || named("H100")) {
        meaning.usage += fmt::format("; {}", sampling_note);
    }
    return meaning;
}

void add_nvml_gpus(Discovery& discovery, std::span<const nvml::Device> gpus,
                   std::span<const std::pair<int, Failure>> failures, bool simulated) {
    Machine& machine = discovery.machine;
    std::vector<GpuIdentity> identities;
    for (const nvml::Device& gpu : gpus) {
        identities.push_back(identify(gpu));
    }
    for (const auto& [index, failure] : failures) {
        if (index < 0) {
            discovery.unavailable("nvml", "energy", "gpu board", failure);
            continue;
        }
        // Kept in the list, so that the indices of those behind it stay what CUDA calls them.
        identities.push_back({.index = index, .name = identities.empty() ? "" : identities.front().name});
        discovery.unavailable("nvml " + gpu_id(index), "energy", "gpu board", failure);
        machine.warnings.push_back(fmt::format("{} is left out: {}", gpu_id(index), failure.reason));
    }
    std::ranges::sort(identities, {}, &GpuIdentity::index);
    const Visibility visible = visible_nvidia_gpus(discovery.environment, identities);
    machine.gpus_on_node += identities.size();
    machine.visibility_source = visible.source;
    machine.warnings.insert(machine.warnings.end(), visible.warnings.begin(), visible.warnings.end());

    for (const nvml::Device& gpu : gpus) {
        const bool mine = visible.contains(gpu.index());
        if (!mine && !discovery.options.all_devices) {
            discovery.available("nvml " + gpu_id(gpu.index()), "energy", "gpu board",
                                fmt::format("not this job's: {}", visible.source));
            continue;
        }
        GpuDiscovery(
            discovery, gpu, simulated,
            mine ? "" : fmt::format("; a job started here would not be billed for it ({})", visible.source))
            .run();
    }
}

void discover_nvml(Discovery& discovery) {
    auto opened = nvml::Library::open();
    if (!opened) {
        discovery.unavailable("nvml", "energy", "gpu board", opened.failure());
        return;
    }
    const std::shared_ptr<nvml::Library> library = *opened;
    Machine& machine = discovery.machine;
    machine.vendor = library;
    machine.driver_version = library->driver_version();
    machine.simulated = library->simulated();
    machine.clock = library->clock();
    const nvml::Library::Devices found = library->devices();
    add_nvml_gpus(discovery, found.devices, found.failures, machine.simulated);
    if (found.devices.empty() && found.failures.empty()) {
        discovery.unavailable(
            "nvml", "energy", "gpu board",
            {"the NVIDIA driver finds no GPU", "check nvidia-smi -L, or the job's device limits"});
    }
}

}  // namespace joulemark::sensors
