// SPDX-License-Identifier: Apache-2.0
//
// NVML's functions for simulated GPUs. Signatures are those of vendor/nvml_api.h; what is not declared there
// (nvmlErrorString, lookup by UUID or PCI bus id) is here because other tools call it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <strings.h>

#include "core/units.h"
#include "sim/nvml_context.h"

namespace joulemark::sim {
namespace {

struct Process {
    std::mutex mutex;
    int initialised = 0;
    std::atomic<State*> state = nullptr;
    std::atomic<const Readings*> readings = nullptr;
    std::vector<std::unique_ptr<Readings>> kept;  // readers may be about when nvmlShutdown is called
    std::vector<api::DeviceTag> handles;

    Process() {
        for (unsigned gpu = 0; gpu < max_gpus; ++gpu) {
            for (int slice = -1; slice < slices_per_gpu; ++slice) {
                handles.push_back({gpu, slice});
            }
        }
    }
};

Process& process() {
    static Process* kept = new Process;  // outlives the threads that still leave the clock at exit
    return *kept;
}

api::Return copy(std::string_view text, char* out, unsigned int length) {
    if (out == nullptr) {
        return api::error_invalid_argument;
    }
    if (length <= text.size()) {
        return api::error_insufficient_size;
    }
    text.copy(out, text.size());
    out[text.size()] = '\0';
    return api::success;
}

struct BusId {
    unsigned domain, bus;
    std::string text() const { return fmt::format("{:08X}:{:02X}:00.0", domain, bus); }
};
BusId bus_id(unsigned gpu) {
    return {gpu / 128, 0x10 + gpu % 128};
}

bool mig_on(const Call& call) {
    return call.readings.fault(FaultKind::mig, call.gpu, call.now) != nullptr;
}

std::string uuid_of(const Call& call) {
    const std::string uuid = call.state.uuid(call.gpu);
    return call.slice < 0 ? uuid : fmt::format("MIG-{:x}{}", call.slice + 1, uuid.substr(5));
}

unsigned milliwatts(double watts) {
    return static_cast<unsigned>(std::lround(watts * 1e3));
}

template <typename List>
api::Return give_list(const List& list, unsigned int* count, unsigned int* out) {
    if (count == nullptr) {
        return api::error_invalid_argument;
    }
    const unsigned int room = *count;
    *count = static_cast<unsigned>(list.size());
    if (out == nullptr || room < list.size()) {
        return api::error_insufficient_size;
    }
    std::ranges::copy(list, out);
    return api::success;
}

api::Return find_device(api::Device* out, const std::function<bool(const State&, unsigned)>& matches) {
    if (initialised() == nullptr) {
        return api::error_uninitialized;
    }
    const State& state = *current_state();
    for (unsigned gpu = 0; out != nullptr && gpu < state.gpus(); ++gpu) {
        if (matches(state, gpu)) {
            *out = handle_of(gpu, -1);
            return api::success;
        }
    }
    return out == nullptr ? api::error_invalid_argument : api::error_not_found;
}

}  // namespace

State* current_state() {
    return process().state.load(std::memory_order_acquire);
}
const Readings* initialised() {
    return process().readings.load(std::memory_order_acquire);
}

api::Device handle_of(unsigned gpu, int slice) {
    const std::size_t at = gpu * (slices_per_gpu + 1) + static_cast<std::size_t>(slice + 1);
    return &process().handles[at];
}

bool is_handle(api::Device device) {
    const auto& handles = process().handles;
    const bool ours =
        !std::less<>{}(device, handles.data()) && std::less<>{}(device, handles.data() + handles.size());
    return ours && device->gpu < current_state()->gpus();
}

void take_time(const State& state, double s) {
    if (state.real_clock() && s > 0) {
        const timespec duration{static_cast<time_t>(s), static_cast<long>((s - std::floor(s)) * 1e9)};
        nanosleep(&duration, nullptr);
    }
}

api::Return faulty(const Call& call, std::string_view function) {
    const auto has = [&](FaultKind kind, std::string_view name = {}) {
        return call.readings.fault(kind, call.gpu, call.now, name);
    };
    if (const Fault* slow = has(FaultKind::slow, function)) {
        take_time(call.state, slow->value * 1e-3);
    }
    if (has(FaultKind::gpu_lost)) {
        return api::error_gpu_is_lost;
    }
    if (has(FaultKind::not_supported, function)) {
        return api::error_not_supported;
    }
    return has(FaultKind::no_permission, function) ? api::error_no_permission : api::success;
}

}  // namespace joulemark::sim

using namespace joulemark::sim;  // NOLINT: the functions below are C's, outside every namespace
using joulemark::nvml::api::Device;
using joulemark::nvml::api::Return;

JOULEMARK_SIM_EXPORT Return nvmlInit_v2() {
    Process& self = process();
    const std::lock_guard guard(self.mutex);
    if (self.initialised == 0) {
        const char* path = std::getenv("JOULEMARK_SIM");
        auto state = State::open(path == nullptr ? "" : path);
        if (!state) {
            return api::error_driver_not_loaded;
        }
        self.state = *state;
        self.kept.push_back(std::make_unique<Readings>(**state));
        self.readings = self.kept.back().get();
    }
    ++self.initialised;
    return api::success;
}
JOULEMARK_SIM_EXPORT Return nvmlInit() {
    return nvmlInit_v2();
}
JOULEMARK_SIM_EXPORT Return nvmlInitWithFlags(unsigned int) {
    return nvmlInit_v2();
}

JOULEMARK_SIM_EXPORT Return nvmlShutdown() {
    Process& self = process();
    const std::lock_guard guard(self.mutex);
    if (self.initialised == 0) {
        return api::error_uninitialized;
    }
    if (--self.initialised == 0) {
        self.readings = nullptr;
    }
    return api::success;
}

JOULEMARK_SIM_EXPORT const char* nvmlErrorString(Return status) {
    switch (status) {
        case api::success:
            return "Success";
        case api::error_uninitialized:
            return "Uninitialized";
        case api::error_invalid_argument:
            return "Invalid Argument";
        case api::error_not_supported:
            return "Not Supported";
        case api::error_no_permission:
            return "Insufficient Permissions";
        case api::error_not_found:
            return "Not Found";
        case api::error_insufficient_size:
            return "Insufficient Size";
        case api::error_driver_not_loaded:
            return "Driver Not Loaded";
        case api::error_gpu_is_lost:
            return "GPU is lost";
        default:
            return "Unknown Error";
    }
}

JOULEMARK_SIM_EXPORT Return nvmlSystemGetDriverVersion(char* out, unsigned int length) {
    return initialised() == nullptr ? api::error_uninitialized : copy("580.82.07 (simulated)", out, length);
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetCount_v2(unsigned int* count) {
    if (initialised() == nullptr) {
        return api::error_uninitialized;
    }
    if (count == nullptr) {
        return api::error_invalid_argument;
    }
    *count = current_state()->gpus();
    return api::success;
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* out) {
    const Readings* readings = initialised();
    if (readings == nullptr) {
        return api::error_uninitialized;
    }
    State& state = *current_state();
    if (out == nullptr || index >= state.gpus()) {
        return api::error_invalid_argument;
    }
    const unsigned gpu = state.reordered(index);
    if (readings->fault(FaultKind::gpu_lost, gpu, state.now_ns())) {
        return api::error_gpu_is_lost;
    }
    *out = handle_of(gpu, -1);
    return api::success;
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* out) {
    return find_device(
        out, [&](const State& state, unsigned gpu) { return uuid != nullptr && state.uuid(gpu) == uuid; });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* out) {
    return find_device(out, [&](const State&, unsigned gpu) {
        return id != nullptr && strcasecmp(bus_id(gpu).text().c_str(), id) == 0;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetIndex(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) { return c.state.reordered(c.gpu); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetName(Device device, char* out, unsigned int length) {
    return on_device(device, __func__,
                     [&](const Call& c) { return copy(c.state.profile().name, out, length); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetUUID(Device device, char* out, unsigned int length) {
    return on_device(device, __func__, [&](const Call& c) { return copy(uuid_of(c), out, length); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetPciInfo_v3(Device device, api::PciInfo* out) {
    return give(device, __func__, out, [](const Call& c) {
        const BusId id = bus_id(c.gpu);
        api::PciInfo info{};
        info.domain = id.domain;
        info.bus = id.bus;
        std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%04X:%02X:00.0", id.domain & 0xffff,
                      id.bus);
        std::snprintf(info.bus_id, sizeof info.bus_id, "%s", id.text().c_str());
        return info;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMinorNumber(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) { return c.gpu; });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetArchitecture(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) { return c.state.profile().architecture; });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMemoryInfo(Device device, api::Memory* out) {
    return give(device, __func__, out, [](const Call& c) {
        const unsigned long long total = c.state.profile().memory_bytes;
        const unsigned long long used = c.readings.memory_used_bytes(c.gpu, c.now);
        return api::Memory{total, total - used, used};
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetPowerUsage(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) {
        return milliwatts(c.state.profile().averages_power ? c.readings.power_average_w(c.gpu, c.now)
                                                           : c.readings.power_instant_w(c.gpu, c.now));
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* out) {
    return give(device, __func__, out, [](const Call& c) {
        take_time(c.state, c.state.counter_latency_s());
        return std::floor(c.readings.energy_j(c.gpu, c.state.now_ns()) * 1e3);
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetFieldValues(Device device, int count, api::FieldValue* values) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (count <= 0 || values == nullptr) {
            return api::error_invalid_argument;
        }
        for (api::FieldValue* field = values; field != values + count; ++field) {
            const bool average = field->field_id == api::field_power_average;
            const bool known = (average || field->field_id == api::field_power_instant) &&
                               field->scope_id == api::power_scope_gpu;
            field->timestamp = c.state.realtime_ns() / 1000;
            field->latency_usec = 0;
            field->value_type = api::type_unsigned;
            field->status =
                !known || (average && !c.state.profile().averages_power)
                    ? api::error_not_supported
                    : faulty(c, average ? "NVML_FI_DEV_POWER_AVERAGE" : "NVML_FI_DEV_POWER_INSTANT");
            if (field->status == api::success) {
                field->value.as_unsigned = milliwatts(average ? c.readings.power_average_w(c.gpu, c.now)
                                                              : c.readings.power_instant_w(c.gpu, c.now));
            }
        }
        return api::success;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetUtilizationRates(Device device, api::Utilization* out) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (out == nullptr) {
            return api::error_invalid_argument;
        }
        if (mig_on(c)) {
            return api::error_not_supported;  // as hardware does
        }
        const double busy = c.readings.busy_pct(c.gpu, c.now);
        *out = {static_cast<unsigned>(std::lround(busy)),
                static_cast<unsigned>(std::lround(busy * memory_share))};
        return api::success;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetClockInfo(Device device, int type, unsigned int* out) {
    return give(device, __func__, out, [&](const Call& c) {
        return type == api::clock_memory ? c.state.profile().memory_clock_mhz
                                         : c.readings.sm_clock_mhz(c.gpu, c.now);
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned int* out) {
    return give(device, __func__, out, [&](const Call& c) {
        return type == api::clock_memory ? c.state.profile().memory_clock_mhz
                                         : c.state.profile().clock_max_mhz;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetTemperature(Device device, int, unsigned int* out) {
    return give(device, __func__, out,
                [](const Call& c) { return std::lround(c.state.temperature_c(c.gpu, c.now)); });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device,
                                                                      unsigned long long* out) {
    return give(device, __func__, out, [](const Call& c) {
        const Segment* load = c.state.load_at(c.gpu, c.now);
        return load == nullptr ? api::reason_gpu_idle : load->capped ? api::reason_sw_power_cap : 0;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* out) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, out);
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetPowerManagementLimit(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) { return milliwatts(c.state.limit_w(c.gpu)); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) { return milliwatts(c.state.limit_w(c.gpu)); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned int* out) {
    return give(device, __func__, out,
                [](const Call& c) { return milliwatts(c.state.profile().limit_max_w); });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned int* low,
                                                                         unsigned int* high) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (low == nullptr || high == nullptr) {
            return api::error_invalid_argument;
        }
        *low = milliwatts(c.state.profile().limit_min_w);
        *high = milliwatts(c.state.profile().limit_max_w);
        return api::success;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceSetPowerManagementLimit(Device device, unsigned int limit) {
    return on_gpu(device, __func__, [&](const Call& c) {
        const Profile& profile = c.state.profile();
        if (limit < milliwatts(profile.limit_min_w) || limit > milliwatts(profile.limit_max_w)) {
            return api::error_invalid_argument;
        }
        c.state.set_limit_mw(c.gpu, limit);
        return api::success;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceSetGpuLockedClocks(Device device, unsigned int low, unsigned int high) {
    return on_gpu(device, __func__, [&](const Call& c) {
        const Profile& profile = c.state.profile();
        if (low > high || high < profile.clock_min_mhz || low > profile.clock_max_mhz) {
            return api::error_invalid_argument;
        }
        // The driver takes the next supported clock below.
        const auto clocks = profile.sm_clocks();
        const auto supported = std::ranges::find_if(clocks, [&](unsigned clock) { return clock <= high; });
        c.state.lock_clock_mhz(c.gpu, low, *supported);
        return api::success;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceResetGpuLockedClocks(Device device) {
    return on_gpu(device, __func__, [](const Call& c) {
        c.state.lock_clock_mhz(c.gpu, 0, 0);
        return api::success;
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned int* count,
                                                               unsigned int* out) {
    return on_gpu(device, __func__, [&](const Call& c) {
        return give_list(std::vector{c.state.profile().memory_clock_mhz}, count, out);
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned int memory_mhz,
                                                                 unsigned int* count, unsigned int* out) {
    return on_gpu(device, __func__, [&](const Call& c) {
        return memory_mhz != c.state.profile().memory_clock_mhz
                   ? api::error_not_found
                   : give_list(c.state.profile().sm_clocks(), count, out);
    });
}

JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMigMode(Device device, unsigned int* current,
                                                 unsigned int* pending) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (current == nullptr || pending == nullptr) {
            return api::error_invalid_argument;
        }
        if (c.state.profile().architecture < api::architecture_ampere) {
            return api::error_not_supported;
        }
        *current = *pending = mig_on(c) ? 1 : 0;
        return api::success;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned int* out) {
    return give(device, __func__, out, [](const Call& c) {
        return c.state.profile().architecture < api::architecture_ampere ? 0 : 7;
    });
}
JOULEMARK_SIM_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned int index,
                                                                Device* out) {
    return on_gpu(device, __func__, [&](const Call& c) {
        if (out == nullptr) {
            return api::error_invalid_argument;
        }
        if (!mig_on(c)) {
            return api::error_not_supported;
        }
        if (index >= slices_per_gpu) {
            return api::error_not_found;
        }
        *out = handle_of(c.gpu, static_cast<int>(index));
        return api::success;
    });
}
