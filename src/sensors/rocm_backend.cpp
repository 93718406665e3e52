// SPDX-License-Identifier: Apache-2.0
//
// AMD GPUs through ROCm SMI.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/clock.h"
#include "sensors/backend.h"
#include "sensors/counter.h"
#include "vendor/rocm_smi.h"

namespace joulemark::sensors {
namespace {

using rocm::Library;
using rocm::Reading;
constexpr const char* scope = "gpu board";
constexpr const char* other_die = "this die says 0: the card's other die reports for both";

/// Every quick metric: a row. Order is the order of the columns.
struct Quick {
    Metric metric;
    const char* call;
    Reading<double> (Library::*read)(std::uint32_t) const;
};
constexpr std::array quick_metrics{
    Quick{Metric::gpu_power_w, "rsmi_dev_power_ave_get, a short-time average", &Library::power_w},
    Quick{Metric::gpu_busy_pct, "rsmi_dev_busy_percent_get", &Library::busy_pct},
    Quick{Metric::gpu_memory_busy_pct, "rsmi_dev_memory_busy_percent_get", &Library::memory_busy_pct},
    Quick{Metric::gpu_memory_used_bytes, "rsmi_dev_memory_usage_get", &Library::memory_used_bytes},
    Quick{Metric::gpu_temperature_c, "rsmi_dev_temp_metric_get", &Library::temperature_c},
    Quick{Metric::gpu_power_limit_w, "rsmi_dev_power_cap_get", &Library::power_limit_w},
};

class QuickSource final : public Source {
  public:
    QuickSource(SourceInfo info, std::shared_ptr<Library> library, std::uint32_t gpu,
                std::vector<const Quick*> rows)
        : Source(std::move(info)), library_(std::move(library)), gpu_(gpu), rows_(std::move(rows)) {}

    void read(std::span<double> values) noexcept override {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const Reading<double> reading = (*library_.*rows_[i]->read)(gpu_);
            values[i] = reading ? reading.value : gap;
        }
    }

  private:
    std::shared_ptr<Library> library_;
    std::uint32_t gpu_;
    std::vector<const Quick*> rows_;
};

class EnergySource final : public Source {
  public:
    EnergySource(SourceInfo info, std::shared_ptr<Library> library, std::uint32_t gpu, CounterModel model)
        : Source(std::move(info)), library_(std::move(library)), gpu_(gpu), counter_(model) {}

    void read(std::span<double> values) noexcept override {
        const auto energy = library_->energy(gpu_);
        values[0] =
            counter_.update(clock_.now_ns(), energy ? std::optional(energy.value.counts) : std::nullopt);
    }
    CounterEvents events() const override { return counter_.events(); }

  private:
    std::shared_ptr<Library> library_;
    std::uint32_t gpu_;
    Counter counter_;
    MonotonicClock clock_;
};

class RocmDiscovery {
  public:
    /// NVIDIA's GPUs, if there are any, come first: AMD's are numbered behind them.
    RocmDiscovery(Discovery& discovery, std::shared_ptr<Library> library)
        : discovery_(discovery),
          library_(std::move(library)),
          first_(static_cast<int>(discovery.machine.gpus_on_node)) {}

    void run() {
        Machine& machine = discovery_.machine;
        const std::uint32_t count = library_->devices();
        std::vector<GpuIdentity> identities;
        for (std::uint32_t gpu = 0; gpu < count; ++gpu) {
            identities.push_back({.index = static_cast<int>(gpu),
                                  .name = library_->name(gpu).value,
                                  .uuid = library_->unique_id(gpu).value,
                                  .pci_bus_id = library_->pci_bus_id(gpu).value});
        }
        const Visibility visible = visible_amd_gpus(discovery_.environment, identities);
        machine.gpus_on_node += count;
        machine.visibility_source += (machine.visibility_source.empty() ? "" : "; AMD: ") + visible.source;
        machine.warnings.insert(machine.warnings.end(), visible.warnings.begin(), visible.warnings.end());
        for (const GpuIdentity& gpu : identities) {
            if (!visible.contains(gpu.index) && !discovery_.options.all_devices) {
                discovery_.available("rocm " + id(gpu.index), "energy", scope,
                                     "not this job's: " + visible.source);
                continue;
            }
            add(gpu);
        }
    }

  private:
    std::string id(int index) const { return fmt::format("gpu{}", first_ + index); }

    void add(const GpuIdentity& identity) {
        const auto gpu = static_cast<std::uint32_t>(identity.index);
        Device device{.id = id(identity.index),
                      .file = File::gpu,
                      .name = identity.name,
                      .component = "gpu",
                      .index = identity.index,
                      .uuid = identity.uuid,
                      .pci_bus_id = identity.pci_bus_id};
        device.memory_bytes = library_->memory_total_bytes(gpu).optional();
        device.power_limit_w = library_->power_limit_w(gpu).optional();
        if (const auto range = library_->power_limit_range_w(gpu)) {
            device.power_limit_min_w = range.value.first;
            device.power_limit_max_w = range.value.second;
        }
        discovery_.add(device);
        add_quick(device, gpu);
        add_energy(device, gpu);
    }

    SourceInfo info(std::string name, const Device& device, std::string method) const {
        SourceInfo info;
        info.name = std::move(name);
        info.device = device.id;
        info.method = std::move(method);
        info.scope = scope;
        info.origin = "ROCm SMI";
        return info;
    }

    void add_quick(const Device& device, std::uint32_t gpu) {
        SourceInfo quick = info("rocm", device, "sampled");
        std::vector<const Quick*> rows;
        for (const Quick& row : quick_metrics) {
            const auto reading = (*library_.*row.read)(gpu);
            const bool silent = reading && row.metric == Metric::gpu_power_w && reading.value == 0;
            if (!reading || silent) {
                const Failure failure = silent ? Failure{other_die, ""} : rocm::explain(reading.status);
                discovery_.unavailable("rocm " + device.id, quantity(row.metric), scope, failure);
                continue;
            }
            quick.metrics.push_back(row.metric);
            rows.push_back(&row);
        }
        if (!rows.empty()) {
            discovery_.use(
                std::make_unique<QuickSource>(std::move(quick), library_, gpu, std::move(rows)),
                [](Metric metric) { return std::ranges::find(quick_metrics, metric, &Quick::metric)->call; });
        }
    }

    void add_energy(const Device& device, std::uint32_t gpu) {
        const auto energy = library_->energy(gpu);
        const bool silent = energy && (energy.value.counts == 0 || !(energy.value.joules_per_count > 0));
        if (!energy || silent) {
            const Failure failure = silent ? Failure{other_die, ""} : rocm::explain(energy.status);
            discovery_.unavailable("rocm.energy " + device.id, "energy", scope, failure);
            return;
        }
        SourceInfo counter = info("rocm.energy", device, "counter");
        counter.metrics = {Metric::gpu_energy_j};
        counter.origin = "rsmi_dev_energy_count_get";
        counter.slow = true;
        const CounterModel model{.modulus = 0,
                                 .units_per_joule = 1 / energy.value.joules_per_count,
                                 .max_power_w = std::max(4 * device.power_limit_max_w.value_or(500), 2000.0),
                                 .min_power_w = 1};
        discovery_.use(std::make_unique<EnergySource>(std::move(counter), library_, gpu, model),
                       device.name.find("MI2") != std::string::npos
                           ? "energy accumulator; on a card of two dies, of both"
                           : "energy accumulator of the board");
    }

    Discovery& discovery_;
    std::shared_ptr<Library> library_;
    int first_;
};

}  // namespace

void discover_rocm(Discovery& discovery) {
    const bool asked_for = std::getenv("JOULEMARK_ROCM_SMI") != nullptr;
    if (discovery.machine.simulated || (!asked_for && !discovery.files.exists("sys/module/amdgpu"))) {
        return;  // no AMD GPU: not worth a line
    }
    auto library = Library::open();
    if (!library) {
        discovery.unavailable("rocm", "energy", scope, library.failure());
        return;
    }
    RocmDiscovery(discovery, *library).run();
}

}  // namespace joulemark::sensors
