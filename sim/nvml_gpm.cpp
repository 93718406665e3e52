// SPDX-License-Identifier: Apache-2.0
//
// GPU performance monitoring of NVML: two samples, and the mean of a metric between them.
#include <algorithm>
#include <iterator>

#include "core/units.h"
#include "sim/nvml_context.h"

namespace joulemark::nvml::api {

struct GpmSampleTag {
    std::int64_t time_ns = 0;
    double busy_s = 0;
};

}  // namespace joulemark::nvml::api

namespace {

/// Metrics of simulated work, while it is busy.
struct {
    unsigned id;
    double value;
} constexpr when_busy[] = {
    {joulemark::nvml::api::gpm_sm_util, 100 * joulemark::sim::sm_share},
    {joulemark::nvml::api::gpm_sm_occupancy, 50},
    {joulemark::nvml::api::gpm_any_tensor, 40},
    {joulemark::nvml::api::gpm_dram_util, 100 * joulemark::sim::memory_share},
    {joulemark::nvml::api::gpm_pcie_tx, 100},
    {joulemark::nvml::api::gpm_pcie_rx, 800},
};

}  // namespace

using namespace joulemark::sim;  // NOLINT: the functions below are C's, outside every namespace
using joulemark::nvml::api::Device;
using joulemark::nvml::api::GpmSample;
using joulemark::nvml::api::Return;

JOULEMARK_SIM_EXPORT Return nvmlGpmQueryDeviceSupport(Device device, api::GpmSupport* out) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (out == nullptr || out->version != api::gpm_support_version) {
            return api::error_invalid_argument;
        }
        out->is_supported_device = c.state.profile().has_gpm ? 1 : 0;
        return api::success;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlGpmSampleAlloc(GpmSample* out) {
    if (out == nullptr) {
        return api::error_invalid_argument;
    }
    *out = new api::GpmSampleTag;
    return api::success;
}
JOULEMARK_SIM_EXPORT Return nvmlGpmSampleFree(GpmSample sample) {
    delete sample;
    return api::success;
}
JOULEMARK_SIM_EXPORT Return nvmlGpmSampleGet(Device device, GpmSample sample) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (sample == nullptr) {
            return api::error_invalid_argument;
        }
        if (!c.state.profile().has_gpm) {
            return api::error_not_supported;
        }
        *sample = {c.now, c.state.busy_s(c.gpu, c.now)};
        return api::success;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlGpmMetricsGet(api::GpmMetricsGet* get) {
    if (get == nullptr || get->version != api::gpm_metrics_get_version || get->sample1 == nullptr ||
        get->sample2 == nullptr || get->num_metrics > static_cast<unsigned>(api::gpm_metric_max)) {
        return api::error_invalid_argument;
    }
    const double span_s = joulemark::seconds(get->sample2->time_ns - get->sample1->time_ns);
    for (unsigned i = 0; i < get->num_metrics; ++i) {
        api::GpmMetric& metric = get->metrics[i];
        const auto* known =
            std::find_if(std::begin(when_busy), std::end(when_busy),
                         [&](const auto& candidate) { return candidate.id == metric.metric_id; });
        if (known == std::end(when_busy)) {
            metric.status = api::error_not_supported;
        } else if (span_s <= 0) {
            metric.status = api::error_no_data;
        } else {
            metric.status = api::success;
            metric.value = known->value * (get->sample2->busy_s - get->sample1->busy_s) / span_s;
        }
    }
    return api::success;
}
