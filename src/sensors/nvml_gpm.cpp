// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>

#include "sensors/nvml_backend.h"

namespace joulemark::sensors {
namespace {

namespace api = nvml::api;
constexpr double gap = std::numeric_limits<double>::quiet_NaN();

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
constexpr std::array gpm_rows{
    GpmRow{Metric::gpu_sm_util_pct, api::gpm_sm_util, 1},
};

/// Means between one read and the next.
class GpmSource final : public Source {
  public:
    GpmSource(SourceInfo info, const nvml::Device& gpu)
        : Source(std::move(info)), gpu_(gpu), samples_{GpmSample(gpu.table()), GpmSample(gpu.table())} {
        sampled_ = samples_[0].get() != nullptr && samples_[1].get() != nullptr && take(samples_[0]);
    }

    bool works() const { return sampled_; }

    void read(std::span<double> values) noexcept override {
        std::ranges::fill(values, gap);
        GpmSample& next = samples_[1 - last_];
        if (!take(next)) {
            return;
        }
        request_.version = api::gpm_metrics_get_version;
        request_.num_metrics = static_cast<unsigned>(gpm_rows.size());
        request_.sample1 = samples_[last_].get();
        request_.sample2 = next.get();
        for (std::size_t i = 0; i < gpm_rows.size(); ++i) {
            request_.metrics[i].metric_id = gpm_rows[i].id;
        }
        last_ = 1 - last_;
        if (gpu_.table().gpm_metrics_get(&request_) != api::success) {
            return;
        }
        for (std::size_t i = 0; i < gpm_rows.size(); ++i) {
            if (request_.metrics[i].status == api::success) {
                values[i] = request_.metrics[i].value * gpm_rows[i].scale;
            }
        }
    }

  private:
    bool take(const GpmSample& sample) noexcept {
        return gpu_.table().gpm_sample_get(gpu_.handle(), sample.get()) == api::success;
    }

    nvml::Device gpu_;
    std::array<GpmSample, 2> samples_;
    std::size_t last_ = 0;
    bool sampled_ = false;
    api::GpmMetricsGet request_{};
};

/// Why GPM cannot be used, or "".
std::string refusal(const nvml::Device& gpu, unsigned architecture) {
    const api::Table& table = gpu.table();
    if (architecture < api::architecture_hopper) {
        return "SM activity needs GPM, which Hopper and newer have; profiling counters are not used, since they lock out "
               "profilers";
    }
    if (table.gpm_support == nullptr || table.gpm_sample_alloc == nullptr || table.gpm_sample_free == nullptr ||
        table.gpm_sample_get == nullptr || table.gpm_metrics_get == nullptr) {
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
    for (const GpmRow& row : gpm_rows) {
        info.metrics.push_back(row.metric);
    }
    const std::string name = info.name + " " + info.device;
    const std::string refused = refusal(gpu, architecture);
    if (!refused.empty()) {
        discovery.unavailable(name, quantity(Metric::gpu_sm_util_pct), "gpu board", {refused, ""});
        return;
    }
    auto source = std::make_unique<GpmSource>(std::move(info), gpu);
    if (!source->works()) {
        discovery.unavailable(name, quantity(Metric::gpu_sm_util_pct), "gpu board",
                              {"GPM gives no sample", "run as root, or ask the administrator to permit profiling"});
        return;
    }
    discovery.use(std::move(source), "GPM: a mean between one sample and the next");
}

}  // namespace joulemark::sensors
