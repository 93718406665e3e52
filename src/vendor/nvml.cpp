// SPDX-License-Identifier: Apache-2.0
#include "vendor/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "vendor/simulated_clock.h"

namespace joulemark::nvml {
namespace {

constexpr std::size_t text_bytes = 96;

/// Calls an optional function: absent is an answer, not a crash.
template <typename Fn, typename... Args>
api::Return call(Fn function, Args... args) {
    return function == nullptr ? api::error_function_not_found : function(args...);
}

template <typename T, typename Fn, typename... Args>
Reading<T> get(Fn function, Args... args) {
    Reading<T> reading;
    reading.status = call(function, args..., &reading.value);
    return reading;
}

Reading<double> scaled(const Reading<unsigned int>& reading, double factor) {
    return {reading.status, reading.value * factor};
}

template <typename Fn>
Reading<std::string> text(Fn function, api::Device device) {
    char buffer[text_bytes] = {};
    const api::Return status = call(function, device, buffer, static_cast<unsigned int>(text_bytes));
    return {status, buffer};
}

}  // namespace

Failure explain(api::Return status) {
    switch (status) {
        case api::success:
            return {"it works", ""};
        case api::error_not_supported:
            return {"this GPU does not support it", ""};
        case api::error_no_permission:
            return {"no permission", "run as root, or ask the administrator to permit it"};
        case api::error_not_found:
            return {"not found", ""};
        case api::error_driver_not_loaded:
            return {"the NVIDIA driver is not loaded", "load it (modprobe nvidia) or run on a node with GPUs"};
        case api::error_function_not_found:
            return {"this driver's library does not have the function", "update the NVIDIA driver"};
        case api::error_gpu_is_lost:
            return {"the GPU has fallen off the bus", "reset or reboot the node"};
        case api::error_reset_required:
            return {"the GPU needs a reset", "ask the administrator to reset it"};
        case api::error_operating_system:
            return {"the operating system blocks the GPU", "allow the device in the job's cgroup or container"};
        case api::error_version_mismatch:
            return {"driver and library versions differ", "reboot, or reload the driver after its update"};
        case api::error_timeout:
            return {"the driver timed out", ""};
        case api::error_no_data:
            return {"the driver has no data", ""};
        case api::error_invalid_argument:
            return {"the driver refuses the value", ""};
        default:
            return {fmt::format("NVML error {}", status), ""};
    }
}

Reading<std::string> Device::name() const { return text(api_->name, handle_); }
Reading<std::string> Device::uuid() const { return text(api_->uuid, handle_); }

Reading<std::string> Device::pci_bus_id() const {
    api::PciInfo info{};
    const api::Return status = call(api_->pci_info, handle_, &info);
    std::string id(info.bus_id);
    std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return {status, id};
}

Reading<unsigned> Device::minor_number() const { return get<unsigned>(api_->minor_number, handle_); }
Reading<unsigned> Device::architecture() const { return get<unsigned>(api_->architecture, handle_); }

Reading<bool> Device::mig_enabled() const {
    unsigned current = 0;
    unsigned pending = 0;
    const api::Return status = call(api_->mig_mode, handle_, &current, &pending);
    return {status, current == 1};
}

Reading<std::vector<std::string>> Device::mig_uuids() const {
    const auto count = get<unsigned>(api_->mig_device_count, handle_);
    Reading<std::vector<std::string>> uuids{count.status, {}};
    for (unsigned i = 0; count && i < count.value; ++i) {
        const auto slice = get<api::Device>(api_->mig_device, handle_, i);
        if (const auto id = slice ? text(api_->uuid, slice.value) : Reading<std::string>{}) {
            uuids.value.push_back(id.value);
        }
    }
    return uuids;
}

Reading<api::Memory> Device::memory() const { return get<api::Memory>(api_->memory, handle_); }

Reading<double> Device::power_w() const { return scaled(get<unsigned>(api_->power_usage, handle_), 1e-3); }
Reading<double> Device::power_instant_w() const { return field_w(api::field_power_instant); }
Reading<double> Device::power_average_w() const { return field_w(api::field_power_average); }

Reading<double> Device::memory_power_w() const {
    return field_w(api::field_power_instant, api::power_scope_memory);
}
Reading<double> Device::module_power_w() const {
    return field_w(api::field_power_instant, api::power_scope_module);
}

Reading<double> Device::field_w(unsigned int field, unsigned int scope) const {
    api::FieldValue value{};
    value.field_id = field;
    value.scope_id = scope;
    const api::Return status = call(api_->field_values, handle_, 1, &value);
    if (status != api::success || value.status != api::success) {
        return {status != api::success ? status : value.status, 0};
    }
    switch (value.value_type) {
        case api::type_double:
            return {api::success, value.value.as_double * 1e-3};
        case api::type_unsigned:
            return {api::success, value.value.as_unsigned * 1e-3};
        case api::type_unsigned_long:
            return {api::success, static_cast<double>(value.value.as_unsigned_long) * 1e-3};
        case api::type_unsigned_long_long:
            return {api::success, static_cast<double>(value.value.as_unsigned_long_long) * 1e-3};
        default:
            return {api::error_not_supported, 0};
    }
}

Reading<std::uint64_t> Device::energy_mj() const {
    const auto millijoules = get<unsigned long long>(api_->total_energy, handle_);
    return {millijoules.status, millijoules.value};
}
Reading<double> Device::energy_j() const {
    const auto millijoules = energy_mj();
    return {millijoules.status, static_cast<double>(millijoules.value) * 1e-3};
}

Reading<double> Device::ecc_errors(int type) const {
    const auto errors = get<unsigned long long>(api_->ecc_errors, handle_, type, api::ecc_since_boot);
    return {errors.status, static_cast<double>(errors.value)};
}

Reading<unsigned> Device::compute_processes() const {
    unsigned count = 0;
    const api::Return status = call(api_->compute_processes, handle_, &count, static_cast<api::ProcessInfo*>(nullptr));
    // No room for the list is how the number is told.
    return {status == api::error_insufficient_size ? api::success : status, count};
}

Reading<api::Utilization> Device::utilization() const {
    return get<api::Utilization>(api_->utilization, handle_);
}

Reading<double> Device::sm_clock_mhz() const {
    return scaled(get<unsigned>(api_->clock, handle_, api::clock_sm), 1);
}
Reading<double> Device::memory_clock_mhz() const {
    return scaled(get<unsigned>(api_->clock, handle_, api::clock_memory), 1);
}
Reading<double> Device::sm_clock_max_mhz() const {
    return scaled(get<unsigned>(api_->max_clock, handle_, api::clock_sm), 1);
}
Reading<double> Device::temperature_c() const {
    return scaled(get<unsigned>(api_->temperature, handle_, api::temperature_gpu), 1);
}
Reading<std::uint64_t> Device::throttle_reasons() const {
    const auto mask = get<unsigned long long>(api_->throttle_reasons, handle_);
    return {mask.status, mask.value};
}

Reading<double> Device::power_limit_w() const {
    return scaled(get<unsigned>(api_->power_limit, handle_), 1e-3);
}
Reading<double> Device::power_limit_enforced_w() const {
    return scaled(get<unsigned>(api_->power_limit_enforced, handle_), 1e-3);
}
Reading<double> Device::power_limit_default_w() const {
    return scaled(get<unsigned>(api_->power_limit_default, handle_), 1e-3);
}
Reading<std::pair<double, double>> Device::power_limit_range_w() const {
    unsigned low = 0;
    unsigned high = 0;
    const api::Return status = call(api_->power_limit_range, handle_, &low, &high);
    return {status, {low * 1e-3, high * 1e-3}};
}

api::Return Device::set_power_limit_w(double watts) const {
    return call(api_->set_power_limit, handle_, static_cast<unsigned>(std::lround(watts * 1e3)));
}
api::Return Device::lock_sm_clock_mhz(unsigned minimum, unsigned maximum) const {
    return call(api_->set_locked_clocks, handle_, minimum, maximum);
}
api::Return Device::unlock_sm_clock() const { return call(api_->reset_locked_clocks, handle_); }

Reading<std::vector<unsigned>> Device::supported_sm_clocks_mhz() const {
    constexpr unsigned most = 512;
    std::vector<unsigned> memory(most);
    unsigned memory_count = most;
    api::Return status = call(api_->supported_memory_clocks, handle_, &memory_count, memory.data());
    if (status != api::success || memory_count == 0) {
        return {status == api::success ? api::error_no_data : status, {}};
    }
    std::vector<unsigned> clocks(most);
    unsigned count = most;
    status = call(api_->supported_graphics_clocks, handle_, memory.front(), &count, clocks.data());
    clocks.resize(status == api::success ? std::min(count, most) : 0);
    std::ranges::sort(clocks, std::greater{});
    return {status, clocks};
}

Result<std::shared_ptr<Library>> Library::open() {
    std::shared_ptr<Library> library(new Library);
    const char* chosen = std::getenv("JOULEMARK_NVML");
    library->path_ = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
    library->handle_ = dlopen(library->path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ == nullptr) {
        return Failure{fmt::format("NVIDIA's management library cannot be loaded ({})", dlerror()),
                       "install the NVIDIA driver, or run on a node with NVIDIA GPUs"};
    }
    api::Table& table = library->table_;
    std::string missing;
    const auto load = [&](auto& member, const char* symbol) {
        member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(library->handle_, symbol));
        return member != nullptr;
    };
#define JOULEMARK_NVML_LOAD_REQUIRED(member, symbol, ...) \
    if (!load(table.member, symbol)) missing = symbol;
#define JOULEMARK_NVML_LOAD(member, symbol, ...) load(table.member, symbol);
    JOULEMARK_NVML_REQUIRED(JOULEMARK_NVML_LOAD_REQUIRED)
    JOULEMARK_NVML_OPTIONAL(JOULEMARK_NVML_LOAD)
    JOULEMARK_NVML_SIMULATED(JOULEMARK_NVML_LOAD)
#undef JOULEMARK_NVML_LOAD
#undef JOULEMARK_NVML_LOAD_REQUIRED
    if (!missing.empty()) {
        return Failure{fmt::format("{} lacks {}", library->path_, missing), "update the NVIDIA driver"};
    }
    const api::Return status = table.init();
    if (status != api::success) {
        Failure failure = explain(status);
        failure.reason = fmt::format("NVIDIA's management library does not start: {}", failure.reason);
        return failure;
    }
    library->initialised_ = true;
    return library;
}

Library::~Library() {
    if (initialised_) {
        table_.shutdown();
    }
    if (handle_ != nullptr) {
        dlclose(handle_);
    }
}

Library::Devices Library::devices() const {
    Devices found;
    unsigned count = 0;
    if (const api::Return status = table_.device_count(&count); status != api::success) {
        found.failures.emplace_back(-1, explain(status));
        return found;
    }
    for (unsigned i = 0; i < count; ++i) {
        api::Device handle = nullptr;
        const api::Return status = table_.device_by_index(i, &handle);
        if (status == api::success) {
            found.devices.emplace_back(&table_, handle, static_cast<int>(i));
        } else {
            found.failures.emplace_back(static_cast<int>(i), explain(status));
        }
    }
    return found;
}

std::string Library::driver_version() const {
    char version[text_bytes] = {};
    return call(table_.driver_version, version, static_cast<unsigned int>(text_bytes)) == api::success ? version : "";
}

std::shared_ptr<Clock> Library::clock() const {
    if (simulated() && table_.sim_clock_is_virtual() != 0) {
        return std::make_shared<SimulatedClock>(&table_);
    }
    return std::make_shared<MonotonicClock>();
}

}  // namespace joulemark::nvml
