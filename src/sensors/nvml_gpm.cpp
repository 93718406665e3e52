// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "sensors/nvml_backend.h"

namespace joulemark::sensors {
namespace {

namespace api = nvml::api;

/// A sample of the GPU's performance counters, owned.
class GpmSample {
  public:
    explicit GpmSample(const api::Table& table) : api_(&table) {
        if (api_->gpm_sample_alloc(&sample_) != api::success) {
            sample_ = nullptr;
        }
    }
    ~GpmSample() {
        if (sample_ != nullptr) {
            api_->gpm_sample_free(sample_);
        }
    }
    GpmSample(const GpmSample&) = delete;
    GpmSample& operator=(const GpmSample&) = delete;
    api::GpmSample get() const { return sample_; }

  private:
    const api::Table* api_;
    api::GpmSample sample_ = nullptr;
};

/// Every metric that is asked for: a row.
struct GpmRow {
    Metric metric;
    unsigned id;
    double scale;  // to the metric's unit
};
constexpr double mib = 1024.0 * 1024.0;
constexpr std::array gpm_rows{
    GpmRow{Metric::gpu_sm_util_pct, api::gpm_sm_util, 1},
    GpmRow{Metric::gpu_sm_occupancy_pct, api::gpm_sm_occupancy, 1},
    GpmRow{Metric::gpu_tensor_pct, api::gpm_any_tensor, 1},
    GpmRow{Metric::gpu_dram_pct, api::gpm_dram_util, 1},
    GpmRow{Metric::gpu_pcie_tx_bytes_per_s, api::gpm_pcie_tx, mib},
    GpmRow{Metric::gpu_pcie_rx_bytes_per_s, api::gpm_pcie_rx, mib},
    GpmRow{Metric::gpu_nvlink_tx_bytes_per_s, api::gpm_nvlink_tx, mib},
    GpmRow{Metric::gpu_nvlink_rx_bytes_per_s, api::gpm_nvlink_rx, mib},
};

/// Two samples and what changed between them.
class GpmReader {
  public:
    GpmReader(const nvml::Device& gpu, std::shared_ptr<void> library)
        : library_(std::move(library)), gpu_(gpu), samples_{GpmSample(gpu.table()), GpmSample(gpu.table())} {
        request_.version = api::gpm_metrics_get_version;
        started_ = samples_[0].get() != nullptr && samples_[1].get() != nullptr && take(samples_[0]);
    }

    bool started() const { return started_; }

    /// The rows to ask for from now on.
    void ask(std::span<const GpmRow* const> rows) {
        request_.num_metrics = static_cast<unsigned>(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            request_.metrics[i].metric_id = rows[i]->id;
        }
    }

    /// The rows since the earlier sample, a status each; nothing when a call fails.
    std::span<const api::GpmMetric> since_last() noexcept {
        const GpmSample& now = samples_[1 - last_];
        request_.sample1 = samples_[last_].get();
        request_.sample2 = now.get();
        if (!take(now) || gpu_.table().gpm_metrics_get(&request_) != api::success) {
            return {};
        }
        return {request_.metrics, request_.num_metrics};
    }

    /// Makes the later sample the earlier one.
    void advance() noexcept { last_ = 1 - last_; }

  private:
    bool take(const GpmSample& sample) noexcept {
        return gpu_.table().gpm_sample_get(gpu_.handle(), sample.get()) == api::success;
    }

    std::shared_ptr<void> library_;  // first: the samples are freed by it
    nvml::Device gpu_;
    std::array<GpmSample, 2> samples_;
    std::size_t last_ = 0;
    bool started_ = false;
    api::GpmMetricsGet request_{};
};

/// Means between one read and the next.
class GpmSource final : public Source {
  public:
    GpmSource(SourceInfo info, std::unique_ptr<GpmReader> reader, std::vector<const GpmRow*> rows)
        : Source(std::move(info)), reader_(std::move(reader)), rows_(std::move(rows)) {
        reader_->ask(rows_);
    }

    void read(std::span<double> values) noexcept override {
        std::ranges::fill(values, gap);
        const auto metrics = reader_->since_last();
        // The counters refresh every 100 ms. Without a refresh in between, the driver answers "success" with
        // 0 for most metrics and a ratio 0/0 for some: that is no reading, and the next one covers this
        // stretch too.
        const bool stale = std::ranges::any_of(metrics, [](const api::GpmMetric& metric) {
            return metric.status == api::success && std::isnan(metric.value);
        });
        if (metrics.empty() || stale) {
            return;
        }
        reader_->advance();
        for (std::size_t i = 0; i < metrics.size(); ++i) {
            if (metrics[i].status == api::success) {
                values[i] = metrics[i].value * rows_[i]->scale;
            }
        }
    }

  private:
    std::unique_ptr<GpmReader> reader_;
    std::vector<const GpmRow*> rows_;
};

/// Why GPM cannot be used, or "".
std::string refusal(const nvml::Device& gpu, unsigned architecture) {
    const api::Table& table = gpu.table();
    if (architecture < api::architecture_hopper) {
        return "SM activity needs GPM, which Hopper and newer have; profiling counters are not used, since "
               "they lock out "
               "profilers";
    }
    if (table.gpm_support == nullptr || table.gpm_sample_alloc == nullptr ||
        table.gpm_sample_free == nullptr || table.gpm_sample_get == nullptr ||
        table.gpm_metrics_get == nullptr) {
        return "this driver's library has no GPM";
    }
    api::GpmSupport support{api::gpm_support_version, 0};
    const api::Return status = table.gpm_support(gpu.handle(), &support);
    if (status != api::success) {
        return "GPM: " + nvml::explain(status).reason;
    }
    return support.is_supported_device != 0 ? "" : "GPM is not supported on this GPU";
}

}  // namespace

void add_nvml_gpm(Discovery& discovery, const nvml::Device& gpu, unsigned architecture, bool simulated) {
    SourceInfo info;
    info.name = "nvml.gpm";
    info.device = fmt::format("gpu{}", gpu.index());
    info.method = simulated ? "simulated" : "sampled";
    info.scope = "gpu board";
    info.origin = "nvmlGpmMetricsGet";
    info.slow = true;  // beside other calls to the same GPU a sample can take tens of milliseconds
    info.native_period_s = 0.1;
    const std::string name = info.name + " " + info.device;
    const std::string activity = quantity(Metric::gpu_sm_util_pct);
    const std::string refused = refusal(gpu, architecture);
    if (!refused.empty()) {
        discovery.unavailable(name, activity, info.scope, {refused, ""});
        return;
    }
    auto reader = std::make_unique<GpmReader>(gpu, discovery.machine.vendor);
    if (!reader->started()) {
        discovery.unavailable(
            name, activity, info.scope,
            {"GPM gives no sample", "run as root, or ask the administrator to permit profiling"});
        return;
    }
    std::vector<const GpmRow*> rows;
    std::ranges::transform(gpm_rows, std::back_inserter(rows), [](const GpmRow& row) { return &row; });
    reader->ask(rows);
    // Two samples at once hold no time between them, so a metric may have no value yet; only one that the GPU
    // does not have is left out.
    std::vector<const GpmRow*> supported;
    const auto metrics = reader->since_last();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!metrics.empty() && metrics[i].status == api::error_not_supported) {
            discovery.unavailable(name, quantity(rows[i]->metric), info.scope,
                                  nvml::explain(metrics[i].status));
        } else {
            supported.push_back(rows[i]);
            info.metrics.push_back(rows[i]->metric);
        }
    }
    if (!supported.empty()) {
        discovery.use(std::make_unique<GpmSource>(std::move(info), std::move(reader), std::move(supported)),
                      "GPM: a mean between one reading and the next");
    }
}

}  // namespace joulemark::sensors
