// SPDX-License-Identifier: Apache-2.0
#include "sensors/fake_nvml.h"

#include <cmath>
#include <cstdio>

namespace joulemark::sensors {
namespace {

using namespace nvml::api;

int live_samples = 0;

FakeGpu& gpu(Device device) {
    return *reinterpret_cast<FakeGpu*>(device);
}

Return copy(Return status, const std::string& text, char* out, unsigned size) {
    std::snprintf(out, size, "%s", text.c_str());
    return status;
}

template <typename T>
Return give(Return status, T* out, T value) {
    if (status == success) {
        *out = value;
    }
    return status;
}

}  // namespace

int live_gpm_samples() {
    return live_samples;
}

Table fake_table() {
    Table table;
    table.name = [](Device d, char* out, unsigned n) { return copy(success, gpu(d).name, out, n); };
    table.uuid = [](Device d, char* out, unsigned n) { return copy(success, gpu(d).uuid, out, n); };
    table.pci_info = [](Device d, PciInfo* info) {
        return copy(success, gpu(d).pci_bus_id, info->bus_id, sizeof info->bus_id);
    };
    table.architecture = [](Device d, unsigned* out) { return give(success, out, gpu(d).architecture); };
    table.mig_mode = [](Device d, unsigned* current, unsigned* pending) {
        *current = *pending = gpu(d).mig ? 1 : 0;
        return success;
    };
    table.memory = [](Device d, Memory* out) {
        return give(gpu(d).status("memory"), out, Memory{1000, 400, 600});
    };
    table.power_usage = [](Device d, unsigned* out) {
        return give(gpu(d).status("power"), out, gpu(d).power_mw);
    };
    table.total_energy = [](Device d, unsigned long long* out) {
        return give(gpu(d).status("energy"), out, gpu(d).energy_mj);
    };
    table.compute_processes = [](Device d, unsigned* count, ProcessInfo*) {
        *count = gpu(d).processes;
        return *count == 0 ? success : error_insufficient_size;
    };
    table.ecc_errors = [](Device d, int type, int, unsigned long long* out) {
        return gpu(d).ecc ? give(success, out, *gpu(d).ecc / (type == ecc_corrected ? 1 : 10)) : error_not_supported;
    };
    table.utilization = [](Device d, Utilization* out) {
        return give(gpu(d).status("utilization"), out, Utilization{97, 55});
    };
    table.clock = [](Device, int kind, unsigned* out) {
        return give(success, out, kind == clock_sm ? 1980U : 3201U);
    };
    table.temperature = [](Device, int, unsigned* out) { return give(success, out, 51U); };
    table.throttle_reasons = [](Device, unsigned long long* out) {
        return give(success, out, static_cast<unsigned long long>(reason_sw_power_cap));
    };
    table.power_limit_enforced = [](Device, unsigned* out) { return give(success, out, 700'000U); };
    table.power_limit_range = [](Device, unsigned* low, unsigned* high) {
        *low = 200'000;
        *high = 700'000;
        return success;
    };
    table.field_values = [](Device d, int, FieldValue* value) {
        const bool instant = value->field_id == field_power_instant;
        if (value->scope_id != power_scope_gpu) {
            value->status = value->scope_id == power_scope_memory ? gpu(d).status("memory power")
                                                                  : gpu(d).status("module");
            value->value_type = type_unsigned;
            value->value.as_unsigned = value->scope_id == power_scope_memory ? 60'000 : 600'000;
            return success;
        }
        value->status = gpu(d).status(instant ? "instant" : "average");
        value->value_type = type_unsigned;
        value->value.as_unsigned = instant ? gpu(d).instant_mw : gpu(d).average_mw;
        return success;
    };
    table.gpm_support = [](Device d, GpmSupport* out) {
        out->is_supported_device = gpu(d).gpm ? 1 : 0;
        return success;
    };
    table.gpm_sample_alloc = [](GpmSample* out) {
        *out = reinterpret_cast<GpmSample>(new FakeGpu*(nullptr));
        ++live_samples;
        return success;
    };
    table.gpm_sample_free = [](GpmSample sample) {
        delete reinterpret_cast<FakeGpu**>(sample);
        --live_samples;
        return success;
    };
    table.gpm_sample_get = [](Device d, GpmSample sample) {
        *reinterpret_cast<FakeGpu**>(sample) = &gpu(d);
        return gpu(d).status("gpm");
    };
    table.gpm_metrics_get = [](GpmMetricsGet* request) {
        for (unsigned i = 0; i < request->num_metrics; ++i) {
            GpmMetric& metric = request->metrics[i];
            const double value = (*reinterpret_cast<FakeGpu**>(request->sample2))->sm_util;
            const bool ratio = metric.metric_id == gpm_sm_util;
            metric.status = ratio || metric.metric_id == gpm_pcie_tx ? success : error_not_supported;
            metric.value = ratio || !std::isnan(value) ? value : 0;  // as the driver does: 0/0, but 0 bytes
        }
        return success;
    };
    return table;
}

}  // namespace joulemark::sensors
